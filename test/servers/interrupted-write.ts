import { setTimeout as sleep } from 'node:timers/promises'
import type { Store } from '../../src/core/store.js'
import type { Interrupt } from '../../src/testing/store-contract.js'

/** Interrupts an operation before its first write, and lets another handle act meanwhile (`OpenedStore.interrupt`). */
export class InterruptedWrite {
  #interruption: (() => Promise<void>) | undefined
  #store: Promise<Store> | undefined

  /** A wrapped client calls this before it sends a write. Only the first one of an operation is interrupted. */
  async beforeWrite(): Promise<void> {
    const interruption = this.#interruption
    this.#interruption = undefined
    await interruption?.()
  }

  /** `open` makes a store whose client calls `beforeWrite`. `isBlocked` is whether any operation waits for a lock. */
  interrupt(open: () => Promise<Store>, isBlocked: () => Promise<boolean> = async () => false): Interrupt {
    return async (operation, meanwhile) => {
      this.#store ??= open().then((made) => made.open().then(() => made))
      const store = await this.#store
      const acts: Promise<unknown>[] = []
      this.#interruption = async () => {
        acts.push(meanwhile())
        await endOrBlock(acts, isBlocked)
      }
      try {
        const result = await operation(store)
        if (acts.length === 0) throw new Error('the operation ended without a write to interrupt')
        await Promise.all(acts)
        return result
      } finally {
        this.#interruption = undefined
        await Promise.allSettled(acts)
      }
    }
  }

  async close(): Promise<void> {
    await (await this.#store)?.close()
  }
}

/** Resolves when all acts have ended, or when one waits for a lock, which the interrupted operation may hold. */
async function endOrBlock(acts: readonly Promise<unknown>[], isBlocked: () => Promise<boolean>): Promise<void> {
  let ended = false
  void Promise.allSettled(acts).then(() => {
    ended = true
  })
  do await sleep(2)
  while (!(ended || (await isBlocked())))
}

/** The object with some of its methods replaced; the others still run on the object itself. */
export function withMethods<Target extends object>(target: Target, methods: Partial<Target>): Target {
  return new Proxy(target, {
    get(_, name) {
      const own: unknown = Reflect.get(methods, name)
      if (own !== undefined) return own
      const member: unknown = Reflect.get(target, name, target)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

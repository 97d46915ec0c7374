import { setTimeout as sleep } from 'node:timers/promises'
import type { Store } from '../../src/core/store.js'
import type { Interrupt } from '../../src/testing/store-contract.js'

/** Holds back the first write of an operation, for the contract's interruptions. */
export class HeldWrite {
  #hold: (() => Promise<void>) | undefined
  #store: Promise<Store> | undefined

  /** A wrapped client calls this before it sends a write. */
  async pass(): Promise<void> {
    const hold = this.#hold
    this.#hold = undefined
    await hold?.()
  }

  /** `open` gives a store whose writes pass here. `isBlocked` says whether any operation waits for another. */
  interrupt(open: () => Promise<Store>, isBlocked: () => Promise<boolean> = async () => false): Interrupt {
    return async (operation, meanwhile) => {
      this.#store ??= open().then((made) => made.open().then(() => made))
      const store = await this.#store
      const acts: Promise<unknown>[] = []
      this.#hold = async () => {
        acts.push(meanwhile())
        await endOf(acts, isBlocked)
      }
      try {
        const result = await operation(store)
        if (acts.length === 0) throw new Error('the operation ended without a write to hold back')
        await Promise.all(acts)
        return result
      } finally {
        this.#hold = undefined
        await Promise.allSettled(acts)
      }
    }
  }

  async close(): Promise<void> {
    await (await this.#store)?.close()
  }
}

/** Resolves when all have ended, or one of them is blocked. */
async function endOf(acts: readonly Promise<unknown>[], isBlocked: () => Promise<boolean>): Promise<void> {
  let ended = false
  void Promise.allSettled(acts).then(() => {
    ended = true
  })
  do await sleep(2)
  while (!(ended || (await isBlocked())))
}

/** An object whose methods go on working on it, with some of them replaced. */
export function replacing<Target extends object>(target: Target, methods: Partial<Target>): Target {
  return new Proxy(target, {
    get(_, name) {
      const own: unknown = Reflect.get(methods, name)
      if (own !== undefined) return own
      const member: unknown = Reflect.get(target, name, target)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

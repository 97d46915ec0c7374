/**
 * The store of one instance: its first operation opens it, and `stop()` closes it.
 *
 * - Operations that are called while the store opens wait for the same opening.
 * - A failed opening fails the operations that wait for it. The next operation tries again.
 * - After `close()` every operation is refused as `NOT_RUNNING`, including those that still wait for the opening.
 * - Several instances may share a handle: the first opens it, and the last to stop closes it.
 */
import { failure } from '../../core/errors.js'
import type { Store } from '../../core/store.js'
import { eachOperation } from './each-operation.js'

type Phase = 'new' | 'open' | 'closed'

/** `operations` are the handle's own operations, or a wrapper of them. `onOpened` is called before the first operation. */
export function openedOnUse(handle: Store, operations: Store, onOpened: () => void): Store {
  let phase: Phase = 'new'
  let opening: Promise<void> | undefined
  let use: HandleUse | undefined

  function open(name: string): Promise<void> {
    if (phase === 'closed') return refuse(name)
    use ??= startUse(handle)
    opening ??= use.open().then(opened, (error: unknown) => {
      opening = undefined
      throw error
    })
    return opening
  }

  function opened(): void {
    if (phase === 'closed') return
    phase = 'open'
    onOpened()
  }

  const store = eachOperation(operations, (name, operation) => (...args) => {
    if (phase === 'open') return operation(...args)
    return open(name).then(() => (phase === 'open' ? operation(...args) : refuse(name)))
  })
  return {
    ...store,
    open: () => open('open').then(() => (phase === 'open' ? undefined : refuse('open'))),
    async close() {
      if (phase === 'closed') return
      phase = 'closed'
      await opening?.catch(() => {})
      await endUse(handle, use)
    },
  }
}

function refuse(name: string): Promise<never> {
  return Promise.reject(
    failure('NOT_RUNNING', `${name} after stop(): the store is closed; make another instance with createBelfry()`),
  )
}

/** How many instances use a handle, and the opening that they share. */
interface HandleUse {
  users: number
  open(): Promise<void>
}

const uses = new WeakMap<Store, HandleUse>()

function startUse(handle: Store): HandleUse {
  const known = uses.get(handle)
  const use = known ?? newUse(handle)
  uses.set(handle, use)
  use.users += 1
  return use
}

function newUse(handle: Store): HandleUse {
  let opening: Promise<void> | undefined
  return {
    users: 0,
    open() {
      opening ??= handle.open().catch((error: unknown) => {
        opening = undefined
        throw error
      })
      return opening
    },
  }
}

/**
 * Closes the handle unless other instances use it. An instance that never used the handle closes it too, because a
 * handle may hold a connection from the start.
 */
async function endUse(handle: Store, own: HandleUse | undefined): Promise<void> {
  if (own !== undefined) own.users -= 1
  if ((uses.get(handle)?.users ?? 0) > 0) return
  uses.delete(handle)
  await handle.close()
}

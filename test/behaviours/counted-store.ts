import type { Store } from '../../src/core/store.js'
import type { Traffic } from '../servers/traffic.js'

/** Counts a store's calls in flight: a call is in flight until it is answered, retries included. */
export function countInFlight(store: Store, traffic: Traffic): Store {
  const part = <Part extends object>(area: Part): Part =>
    new Proxy(area, {
      get(target, name, receiver) {
        const member: unknown = Reflect.get(target, name, receiver)
        // Not counted: its handler may wait for virtual time, which stands still while a call is in flight.
        if (typeof member !== 'function' || name === 'transact') return member
        return (...args: unknown[]) => traffic.during(async () => Reflect.apply(member, target, args) as unknown)
      },
    })
  return {
    supports: store.supports,
    schedules: part(store.schedules),
    runs: part(store.runs),
    leases: part(store.leases),
    instances: part(store.instances),
    records: part(store.records),
    subscribe: store.subscribe,
    open: () => traffic.during(() => store.open()),
    close: () => traffic.during(() => store.close()),
    now: () => traffic.during(() => store.now()),
    freeze: (note) => traffic.during(() => store.freeze(note)),
    thaw: () => traffic.during(() => store.thaw()),
    frozen: () => traffic.during(() => store.frozen()),
  }
}

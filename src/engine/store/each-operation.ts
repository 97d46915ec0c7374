import type { Store } from '../../core/store.js'

export type Operation = (...args: never[]) => Promise<unknown>

/** Returns a wrapped operation. `name` is the operation's name in the contract: `schedules.put`, `now`. */
export type Replace = (name: string, operation: Operation) => Operation

const AREAS = ['schedules', 'runs', 'leases', 'instances', 'records'] as const
const OWN = ['now', 'freeze', 'thaw', 'frozen', 'diagnose'] as const

/** The store with every operation wrapped. `open`, `close`, `subscribe` and listeners stay as they are. */
export function eachOperation(store: Store, replace: Replace): Store {
  const { supports, onLost, onWarning, reopen } = store
  const areas = AREAS.map((area) => [area, replacedIn(store[area], `${area}.`, replace)])
  const own = OWN.filter((name) => store[name] !== undefined).map((name) => [
    name,
    replace(name, (store[name] as Operation).bind(store)),
  ])
  return {
    supports,
    open: () => store.open(),
    close: () => store.close(),
    subscribe: (listener) => store.subscribe(listener),
    ...(onLost === undefined ? {} : { onLost: onLost.bind(store) }),
    ...(onWarning === undefined ? {} : { onWarning: onWarning.bind(store) }),
    ...(reopen === undefined ? {} : { reopen: reopen.bind(store) }),
    ...Object.fromEntries([...areas, ...own]),
  }
}

/**
 * Wraps every member of an area, including those of its class: all of them are operations. Each call looks the member
 * up again.
 */
function replacedIn<Part extends object>(part: Part, prefix: string, replace: Replace): Part {
  const operations = part as Readonly<Record<string, Operation>>
  const replaced: Record<string, Operation> = {}
  for (let owner: object = part; owner !== Object.prototype; owner = Object.getPrototypeOf(owner)) {
    for (const name of Object.getOwnPropertyNames(owner)) {
      if (name === 'constructor' || name in replaced) continue
      replaced[name] = replace(`${prefix}${name}`, (...args) => (operations[name] as Operation)(...args))
    }
  }
  return replaced as Part
}

/**
 * Every key of the store. Scripts name keys only by `key(name, …)`, and a test compares their names with this list.
 * Each key begins with the prefix of its shard, such as `belfry:{3}:`, so that one script can use all keys of the
 * shard.
 */
export const KEYS = {
  meta: 'hash: shards, count (the last number), line, frozen, swept',

  schedules: 'hash: id → text of the schedule (schedules/schedule-codec.ts)',
  'schedule-ids': 'sorted set: all ids in their order',
  'schedule-due': 'sorted set: ids by when they are due',
  'schedules-unstamped': 'sorted set: ids whose key waits for a stamp',
  'schedules-finished': 'sorted set: ids that go with their history, by when they finished',
  planners: 'hash: who plans due schedules now → until when that counts',
  skips: 'sorted set: [schedule, range] as JSON, by when it was written',
  'schedule-skips': '<schedule> sorted set: ranges of skipped ticks, by the last tick',
  'schedule-engaged': '<schedule> sorted set: runs that are due, running or between attempts',
  'schedule-waiting': '<schedule> sorted set: runs that wait for those',
  'schedule-later': '<schedule> sorted set: runs that are not due yet, by when',
  'schedule-ended': '<schedule> sorted set: ended runs that the history keeps',
  'schedule-backfills': '<schedule> hash: instant/name → run',

  runs: 'hash: number → text of the run (runs/run-codec.ts)',
  'runs-all': 'sorted set: all runs by number',
  'runs-open': 'sorted set: runs that have not ended, as owner, line break and number, in that order',
  'runs-ended': 'sorted set: ended runs in the order in which they ended',
  'runs-unstamped': 'sorted set: runs that wait for a stamp',
  queue: '<priority>:<target> sorted set: ready runs by when they may start',
  'queue-priorities': '<target> sorted set: the priorities that a target has queues for',
  'queue-targets': 'sorted set: the targets that have queues',
  dedupe: 'hash: [target, dedupe key] as JSON → run and until when it counts',
  'dedupe-expiry': 'sorted set: the same, by when they expire',

  lock: '<name> text of a lock or of a key of runs (locks/lease-codec.ts)',
  'lock-names': 'sorted set: all names in their order',
  'lock-waiters': '<name> sorted set: holders that wait for it, oldest first',
  'lock-waiter-terms': '<name> hash: holder → its terms: what it asks for, and until when (locks/lease-codec.ts)',
  'lock-blocked': 'set: names that something waits for',
  'key-due': '<name> sorted set: runs of a key that are due or began',
  'key-ready': '<name> sorted set: of these, ready',
  'key-waiting': '<name> sorted set: of these, waiting for the key',
  'key-skipping': '<name> set: of the waiting, those that are skipped once the key is known to be busy',
  'key-later': '<name> sorted set: ready runs that are not due yet, by when',
  'key-later-waiting': '<name> sorted set: runs that are not due yet and wait for something else, by when',

  instance: '<id> text of an instance (instances/instance-codec.ts)',
  instances: 'sorted set: ids by when their leases run out',
  'instance-running': '<id> sorted set: the runs that it runs, in the order of their numbers',
  'instance-claims': '<id> sorted set: claims that are not known to be answered',
  jobs: 'hash: name → job as JSON',
  'declared-sets': '<app> hash: hash → when it was first seen, and the set as JSON',
  'declared-alive': '<app> hash: hash → when an instance with it last proved life',

  record: '<kind> hash: id → text of the record (records/record-codec.ts)',
  'record-ids': '<kind> sorted set: ids in their order',
  'record-expiry': 'sorted set: [kind, id] as JSON, by when they expire',

  'ticket-wanted': 'sorted set: runs that need a ticket in their key’s shard',
  'ticket-sent': 'sorted set: runs whose ticket is there, by when it was sent',
  'ticket-checked': 'set: runs that are only enqueued if their key is free when they get their ticket',
  'ticket-unwanted': 'hash: run that ended without having begun → shard and attempt of its ticket',
  'ticket-held': 'sorted set: tickets of runs that wait, by when they were last sent',
  'ticket-skipped': 'hash: ticket → reason for which it was skipped',
  'ticket-refused': '<run> text: who had the key of a run that was not enqueued after all',
} as const satisfies Readonly<Record<string, string>>

export type KeyName = keyof typeof KEYS

/** The key prefix of the first shard, which also stores the number of shards. */
export function firstShard(prefix: string): string {
  return `${prefix}{0}:`
}

/**
 * Parses a key of the store: `belfry:{3}:lock:mail` is the key `lock` of `mail`, in the shard with the prefix
 * `belfry:{3}:`.
 */
export function readKey(
  name: string,
): { readonly shard: string; readonly key: KeyName; readonly of: string } | undefined {
  const [, shard = '', key = '', of = ''] = /^(.*?\{[^}]*\}:)([a-z-]+)(?::(.*))?$/s.exec(name) ?? []
  return key in KEYS ? { shard, key: key as KeyName, of } : undefined
}

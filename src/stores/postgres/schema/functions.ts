/**
 * The functions of the database. Every operation that locks before it reads is a function, for two reasons. Inside a
 * function each statement sees what was committed while an earlier one waited for a lock. And the whole operation is
 * one round trip, so a process that stops cannot leave its transaction open.
 *
 * Each session keeps the plans of functions, even plans made while the tables were still empty. So operations switch
 * off the access paths that suit only small tables: whatever the statistics say, a run is found by index. A query that
 * must scan all the same then looks so expensive that Postgres would compile it, for 50 ms each time, so JIT is off,
 * too. What remains are joins in which Postgres may begin with either side, and read a whole table for each item of a
 * list. So queries put the list first and look up each row (`cross join lateral … limit 1`, whose order is fixed), or
 * find rows by `id = any (list)`.
 */
import beat from '../instances/beat.sql'
import join from '../instances/join.sql'
import leave from '../instances/leave.sql'
import acquire from '../locks/acquire.sql'
import lockNames from '../locks/lock-names.sql'
import passOn from '../locks/pass-on.sql'
import release from '../locks/release.sql'
import renew from '../locks/renew.sql'
import reset from '../locks/reset.sql'
import cancel from '../runs/cancel.sql'
import claim from '../runs/claim.sql'
import enqueue from '../runs/enqueue.sql'
import lockRuns from '../runs/lock-runs.sql'
import prune from '../runs/prune.sql'
import queues from '../runs/queues.sql'
import rescue from '../runs/rescue.sql'
import retry from '../runs/retry.sql'
import settle from '../runs/settle.sql'
import stamp from '../runs/stamp.sql'
import transitions from '../runs/transitions.sql'
import unheardClaims from '../runs/unheard-claims.sql'
import advance from '../schedules/advance.sql'
import change from '../schedules/change.sql'
import takeBack from '../schedules/take-back.sql'
import commitRun from '../transactions/commit-run.sql'
import enqueueInside from '../transactions/enqueue-inside.sql'
import operation from './operation.sql'

const SOURCES = [
  ...[operation, lockNames, lockRuns, queues, transitions, passOn],
  ...[acquire, release, renew, reset],
  ...[enqueue, enqueueInside, claim, unheardClaims, settle, cancel, retry, stamp, rescue, prune, commitRun],
  ...[takeBack, change, advance, join, beat, leave],
]

/**
 * The functions that the store calls directly. Functions that they call inherit these settings. With this search_path
 * they find no function, operator or type in a schema of the session's search_path.
 */
const OPERATIONS = [
  ...['renew_locks', 'reset_lock'],
  ...['enqueue_runs', 'enqueue_runs_inside', 'claim_runs', 'settle_runs', 'cancel_run', 'retry_run', 'stamp_runs'],
  ...['rescue_runs', 'prune', 'commit_run', 'engaged_runs'],
  ...['take_due_schedules', 'next_due', 'record_ticks', 'change_schedules', 'lock_schedules_alone'],
  ...['join_instance', 'beat', 'leave'],
]
const BY_INDEX =
  'set search_path to pg_catalog, pg_temp set plan_cache_mode to force_generic_plan set enable_seqscan to off set enable_hashjoin to off set enable_mergejoin to off set jit to off'

/**
 * Leases are inserted and deleted all the time, which leaves dead entries in their indexes. A plain index scan marks a
 * dead entry, so that later scans skip it; a bitmap scan would read it again each time.
 */
const LOCK_OPERATIONS = ['acquire_locks', 'release_locks']
const BY_PLAIN_INDEX = `${BY_INDEX} set enable_bitmapscan to off`

const settingsOf = (names: readonly string[], settings: string) =>
  names.map((name) => `alter function belfry.${name} ${settings};`)

export const FUNCTIONS = [
  ...SOURCES,
  ...settingsOf(OPERATIONS, BY_INDEX),
  ...settingsOf(LOCK_OPERATIONS, BY_PLAIN_INDEX),
].join('\n')

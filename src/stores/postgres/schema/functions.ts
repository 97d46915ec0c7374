/**
 * The functions of the database. Every operation that locks before it looks is one: only there each statement sees what
 * was committed while it waited for a lock, and only there all of it is one round trip that no stopped process can hold
 * open.
 *
 * Plans of functions are kept by each session, also when they were made while the tables were still empty. So the ways of
 * reading that are only good for small tables are switched off in operations: whatever the statistics say, a run is found
 * by index. What has to be read that way all the same then looks so expensive that Postgres would compile it, for 50 ms
 * each time: that is off, too. That leaves joins in which Postgres may begin with either side, and read all of a table for
 * each of a list. So lists come first and look up each row (`cross join lateral … limit 1`, which cannot be turned
 * round), or rows are found by `id = any (list)`.
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
 * Operations as they are called from outside; their steps run under the settings of the caller. None of them looks for a
 * function, an operator or a type where the session would.
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
 * Leases come and go, and leave entries in their indexes. A plain index scan marks those for the next one; a bitmap scan
 * would read them all again each time.
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

/** Turns errors of a Redis server into messages that say what to do. The first word of a Redis error is its code. */
import { BelfryError, type ErrorCode, failure } from '../../../core/errors.js'

type Explanation = readonly [ErrorCode, string]

const UNREACHABLE: Explanation = ['STORE_UNREACHABLE', 'does not answer: check the server, the network and the URL']
const REFUSES_USER: Explanation = ['STORE_UNREACHABLE', 'refuses this user: check the user and the password']
const BUSY: Explanation = ['STORE_UNREACHABLE', 'is busy: it goes on when it is ready']

const NO_CLUSTER: Explanation = ['STORE_INVALID', 'is not a cluster: give its `url`, or a client for one server']
const NO_DATABASE: Explanation = ['STORE_INVALID', 'has no database of that number: give a smaller one in the URL']
const IS_CLUSTER: Explanation = ['STORE_INVALID', 'is a node of a cluster: give `nodes`, or a cluster client']

const OVERWRITTEN: Explanation = [
  'STORE_INVALID',
  'has a key of the store that another program has overwritten: look for it with belfry doctor, and restore or delete it',
]

const EXPLANATIONS: Readonly<Record<string, Explanation>> = {
  READONLY: ['STORE_UNREACHABLE', 'is a replica, as after a failover: connect to the primary'],
  OOM: ['STORE_FULL', 'is full: raise maxmemory, or shorten the history; everything goes on when there is space'],
  MISCONF: ['STORE_FULL', 'cannot write to its disk: free some space, or look into its log'],
  NOREPLICAS: ['STORE_UNREACHABLE', 'has too few replicas to accept writes (min-replicas-to-write)'],
  NOPERM: [
    'STORE_INVALID',
    'forbids this user a command: allow it to run scripts, on keys and channels with this prefix',
  ],
  WRONGTYPE: OVERWRITTEN,
  NOAUTH: REFUSES_USER,
  WRONGPASS: REFUSES_USER,
  MOVED: IS_CLUSTER,
  CROSSSLOT: IS_CLUSTER,
  LOADING: BUSY,
  BUSY,
  MASTERDOWN: BUSY,
  CLUSTERDOWN: BUSY,
  TRYAGAIN: BUSY,
  UNBLOCKED: BUSY,
}

/**
 * The code of an error from the server, such as `MOVED`. Before Redis 7, the code of an error inside a script is
 * wrapped in another message.
 */
export function errorWord(error: unknown): string | undefined {
  const said = saidBy(error)?.message ?? ''
  const word = /^-?([A-Z]+) /.exec(said)?.[1]
  return word === 'ERR' ? (/@user_script: ?\d+: -([A-Z]+) /.exec(said)?.[1] ?? word) : word
}

/** The error itself, or for a cluster of ioredis the error of the last node that it asked. */
function saidBy(error: unknown): Error | undefined {
  if (!(error instanceof Error)) return undefined
  return 'lastNodeError' in error && error.lastNodeError instanceof Error ? error.lastNodeError : error
}

/** Whether a retry cannot succeed. */
export function isFinal(error: unknown): boolean {
  const said = errorWord(error)
  return said === 'WRONGPASS' || said === 'NOAUTH' || said === 'NOPERM' || isNoCluster(error) || isNoDatabase(error)
}

function isNoDatabase(error: unknown): boolean {
  return /DB index is out of range/.test(saidBy(error)?.message ?? '')
}

function isNoCluster(error: unknown): boolean {
  return /cluster support disabled/.test(saidBy(error)?.message ?? '')
}

/** Converts an error of the client into a `BelfryError`. Returns any other error unchanged. */
export function storeError(error: unknown, prefix: string): unknown {
  if (error instanceof BelfryError || error instanceof TypeError || !(error instanceof Error)) return error
  const said = errorWord(error)
  const final = isNoCluster(error) ? NO_CLUSTER : isNoDatabase(error) ? NO_DATABASE : undefined
  if (final === undefined && said === 'ERR') return error
  const known = final ?? (said === undefined ? undefined : EXPLANATIONS[said])
  const [code, problem] = known ?? UNREACHABLE
  return failure(code, `the Redis server of "${prefix}" ${problem} (${error.message})`, { cause: error })
}

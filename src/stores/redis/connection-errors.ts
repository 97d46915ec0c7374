/** What can be wrong with a server, said in words that tell what to do. Redis names its errors by their first word. */
import { BelfryError, type ErrorCode, failure } from '../../core/errors.js'

type Explanation = readonly [ErrorCode, string]

const UNREACHABLE: Explanation = ['STORE_UNREACHABLE', 'does not answer: check the server, the network and the URL']
const REFUSES_USER: Explanation = ['STORE_UNREACHABLE', 'refuses this user: check the user and the password']
const BUSY: Explanation = ['STORE_UNREACHABLE', 'is busy: it goes on when it is ready']

const EXPLANATIONS: Readonly<Record<string, Explanation>> = {
  READONLY: ['STORE_UNREACHABLE', 'is a replica, as after a failover: connect to the primary'],
  OOM: ['STORE_FULL', 'is full: raise maxmemory, or shorten the history; everything goes on when there is space'],
  MISCONF: ['STORE_FULL', 'cannot write to its disk: free some space, or look into its log'],
  NOREPLICAS: ['STORE_UNREACHABLE', 'has too few replicas to accept writes (min-replicas-to-write)'],
  NOPERM: ['STORE_INVALID', 'forbids this user a command: allow it to run scripts on keys with this prefix'],
  NOAUTH: REFUSES_USER,
  WRONGPASS: REFUSES_USER,
  LOADING: BUSY,
  BUSY,
  MASTERDOWN: BUSY,
  CLUSTERDOWN: BUSY,
  TRYAGAIN: BUSY,
  UNBLOCKED: BUSY,
}

/** The first word of an error that came from the server. */
export function errorWord(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  return /^-?([A-Z]+) /.exec(error.message)?.[1]
}

/** An error of the client in our words; any other error as it is. */
export function storeError(error: unknown, prefix: string): unknown {
  if (error instanceof BelfryError || error instanceof TypeError || !(error instanceof Error)) return error
  const said = errorWord(error)
  if (said === 'ERR' || said === 'WRONGTYPE') return error
  const [code, problem] = (said === undefined ? undefined : EXPLANATIONS[said]) ?? UNREACHABLE
  return failure(code, `the Redis server of "${prefix}" ${problem} (${error.message})`, { cause: error })
}

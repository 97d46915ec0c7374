/** Conditional requests: If-Match and If-None-Match hold the version of a schedule as its ETag. */
import type { Belfry } from '../../belfry.js'
import { BelfryError } from '../../core/errors.js'
import { problem } from './problem.js'
import type { RouteParts, ServerContext } from './route.js'

const TAG = /^(?:W\/)?"(\d{1,16})"$/

export function etag(version: number): string {
  return `"${version}"`
}

const PRECONDITIONS = ['If-Match', 'If-None-Match', 'If-Unmodified-Since']

/** Refuses headers on which a caller relies, and which the route would ignore. */
export function refuseUnsupported(c: ServerContext, { method, headers = {}, idempotent = false }: RouteParts): void {
  if (method === 'get') return
  for (const name of PRECONDITIONS) {
    if (c.req.header(name) === undefined || name in headers) continue
    throw badHeader(name.toLowerCase(), 'this route does not check it: send the request without it')
  }
  if (method !== 'post' || idempotent || c.req.header('idempotency-key') === undefined) return
  throw badHeader('idempotency-key', 'this route does not support it, and may be repeated: send the request without it')
}

/** How often a write with `If-Match: *` is tried. It accepts any version, so it is retried after it lost a race. */
const MAX_TRIES = 100

/** Calls `write` with the version that If-Match or If-None-Match asks for. With `If-Match: *`, it retries after a conflict. */
export async function conditionally<Written>(
  c: ServerContext,
  belfry: Belfry,
  id: string,
  write: (options: { readonly ifVersion?: number }) => Promise<Written>,
): Promise<Written> {
  const isAny = c.req.header('if-match')?.trim() === '*'
  for (let attempt = 1; ; attempt += 1) {
    const ifVersion = await wantedVersion(c, belfry, id)
    try {
      return await write(ifVersion === undefined ? {} : { ifVersion })
    } catch (error) {
      const isRaced = error instanceof BelfryError && error.code === 'VERSION_CONFLICT'
      if (!isRaced || !isAny || attempt === MAX_TRIES) throw error
    }
  }
}

/** The version that the write may replace: 0 if the schedule must not exist yet, undefined if there is no precondition. */
async function wantedVersion(c: ServerContext, belfry: Belfry, id: string): Promise<number | undefined> {
  const none = c.req.header('if-none-match')
  const match = c.req.header('if-match')
  if (none !== undefined) {
    if (none.trim() === '*' && match === undefined) return 0
    throw badHeader('if-none-match', 'only "*" is supported here, and not together with If-Match')
  }
  if (match === undefined) return undefined
  if (match.trim() !== '*' && !match.includes(',')) return versionOf(match)
  const current = (await belfry.schedules.get(id))?.version
  const isWanted = match.trim() === '*' || match.split(',').some((tag) => versionOf(tag) === current)
  if (current !== undefined && isWanted) return current
  throw problem(412, 'VERSION_CONFLICT', `schedule "${id}" ${current === undefined ? 'does not exist' : 'was changed'}`)
}

function versionOf(tag: string): number {
  const version = Number(TAG.exec(tag.trim())?.[1])
  if (Number.isSafeInteger(version) && version > 0) return version
  throw badHeader('if-match', 'it must be the ETag of a schedule, such as "12"')
}

function badHeader(pointer: string, message: string) {
  return problem(400, 'REQUEST_INVALID', `${pointer}: ${message}`, { errors: [{ pointer, message }] })
}

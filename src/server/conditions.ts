/** Preconditions of writes: If-Match and If-None-Match over the versions of schedules. */
import type { Belfry } from '../belfry.js'
import { problem } from './problem.js'
import type { ServerContext } from './route.js'

const TAG = /^(?:W\/)?"(\d{1,16})"$/

export function etag(version: number): string {
  return `"${version}"`
}

/** The version that a write may replace: 0 for none yet, undefined for any or none. */
export async function wantedVersion(c: ServerContext, belfry: Belfry, id: string): Promise<number | undefined> {
  const none = c.req.header('if-none-match')
  const match = c.req.header('if-match')
  if (none !== undefined) {
    if (none.trim() === '*' && match === undefined) return 0
    throw badHeader('if-none-match', 'only "*" makes sense here, and not together with If-Match')
  }
  if (match === undefined) return undefined
  if (match.trim() !== '*' && !match.includes(',')) return versionOf(match)
  const current = (await belfry.schedules.get(id))?.version
  const isWanted = match.trim() === '*' || match.split(',').some((tag) => versionOf(tag) === current)
  if (current !== undefined && isWanted) return current
  throw problem(412, 'VERSION_CONFLICT', `schedule "${id}" ${current === undefined ? 'is not there' : 'was changed'}`)
}

function versionOf(tag: string): number {
  const version = Number(TAG.exec(tag.trim())?.[1])
  if (Number.isSafeInteger(version) && version > 0) return version
  throw badHeader('if-match', 'it must be an ETag that a schedule came with, such as "12"')
}

function badHeader(pointer: string, message: string) {
  return problem(400, 'REQUEST_INVALID', `${pointer}: ${message}`, { errors: [{ pointer, message }] })
}

/** GET /v1/schedules:export: all schedules as NDJSON. */
import { z } from 'zod'
import { inputOf } from '../../api/schedules/schedule-input-of.js'
import type { Belfry } from '../../belfry.js'
import { breather } from '../../core/in-turns.js'
import { CancelToken } from '../http/cancel-token.js'
import { content } from '../http/reply.js'
import { type Route, route } from '../http/route.js'
import type { Caller } from '../security/caller.js'
import { visible, visiblePrefix } from '../security/visibility.js'
import { text } from '../shapes/fields.js'
import { scheduleLine } from '../shapes/schedule.js'

const NDJSON = 'application/x-ndjson'
/** Pages grow up to this length in characters. So large schedules do not take more memory than small ones. */
const PAGE_LENGTH = 262_144
const FIRST_PAGE = 20
const LARGEST_PAGE = 500

export function exportRoute(belfry: Belfry): Route {
  return route({
    ...{ method: 'get', path: '/v1/schedules:export', id: 'exportSchedules', tag: 'schedules', role: 'viewer' },
    summary: 'All schedules as lines of JSON, one each, as `:import` takes them.',
    query: z.strictObject({
      prefix: z.string().exactOptional(),
      after: text.exactOptional().meta({ description: 'Only ids after this one, to resume an interrupted export.' }),
    }),
    answers: { 200: { description: 'In order of id.', line: scheduleLine, type: NDJSON } },
    handle: async (c, { query: { prefix, after } }) => {
      const scope = visiblePrefix(c.get('caller'), prefix)
      const body =
        scope === undefined ? '' : exportedLines(belfry, c.get('caller'), scope, after, () => new CancelToken(c))
      return content(body, NDJSON)
    },
  })
}

/**
 * Reads a page only when the client wants more, so that a slow client costs no memory. The event loop turns in between,
 * because some stores answer in the same turn. On an error the stream breaks off
 * instead of ending, so that a client cannot mistake a partial export for a complete one.
 */
function exportedLines(
  belfry: Belfry,
  caller: Caller,
  prefix: string,
  first: string | undefined,
  begin: () => CancelToken,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  let after: { readonly after?: string } = first === undefined ? {} : { after: first }
  const breathe = breather()
  let size = FIRST_PAGE
  // The first page creates it. The body of a HEAD response is never read, so nothing would end an earlier cancel token.
  let cancelToken: CancelToken | undefined
  const next = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<boolean> => {
    cancelToken ??= begin()
    cancelToken.check()
    const page = await belfry.schedules.list({ prefix, limit: size, ...after })
    let lines = ''
    for (const { id, definition } of visible(caller, 'schedule', page.items)) {
      lines += `${JSON.stringify({ id, ...inputOf(definition) })}\n`
      await breathe()
    }
    if (lines !== '') controller.enqueue(encoder.encode(lines))
    size = lines.length < PAGE_LENGTH ? Math.min(size * 2, LARGEST_PAGE) : Math.max(size >> 1, 1)
    if (page.next !== undefined) after = { after: page.next }
    return page.next !== undefined
  }
  return new ReadableStream(
    {
      async pull(controller) {
        let hasMore = false
        try {
          hasMore = await next(controller)
          if (!hasMore) controller.close()
        } finally {
          if (!hasMore) cancelToken?.end()
        }
      },
      cancel: () => cancelToken?.end(),
    },
    { highWaterMark: 0 },
  )
}

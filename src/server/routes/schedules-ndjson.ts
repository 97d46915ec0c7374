/** Schedules as lines of JSON, as many as there are. */

import { createHash } from 'node:crypto'
import { z } from 'zod'
import { addInput } from '../../api/schedules/schedule-input-of.js'
import type { Belfry } from '../../belfry.js'
import { systemClock } from '../../core/clock.js'
import type { Json } from '../../core/json.js'
import { Going } from '../http/cancel-token.js'
import { type BodyLimits, bodyParts } from '../http/json-body.js'
import { type Problem, problem, toProblem } from '../http/problem.js'
import { content, json } from '../http/reply.js'
import { type Route, route, type ServerContext } from '../http/route.js'
import { NotText, textLines } from '../http/text-lines.js'
import type { Caller } from '../security/caller.js'
import { sightedPrefix } from '../security/visibility.js'
import type { ParsedServerOptions } from '../server-options.js'
import { imported, importProgress } from '../shapes/answers.js'
import { text } from '../shapes/fields.js'
import { type ImportCounts, ScheduleImport } from './schedule-import.js'

const TAG = 'schedules'
const LINES = 'application/x-ndjson'
const PAGE = 1_000
const KIND = 'import'
const KEPT_MS = 7 * 24 * 3_600_000
/** How often the progress of an import is written down. */
const NOTE_MS = 1_000
const MAX_LINE = 1_000_000_000_000

const name = z
  .string()
  .min(1)
  .max(255)
  .meta({ description: 'Names the import, so that one that broke off can be asked about.' })

export function scheduleLineRoutes(belfry: Belfry, options: ParsedServerOptions): readonly Route[] {
  return [exportRoute(belfry), importRoute(belfry, options), progressRoute(belfry)]
}

function exportRoute(belfry: Belfry): Route {
  return route({
    ...{ method: 'get', path: '/v1/schedules:export', id: 'exportSchedules', tag: TAG, role: 'viewer' },
    summary: 'All schedules, a line of JSON each, as `:import` takes them.',
    query: z.strictObject({
      prefix: z.string().exactOptional(),
      after: text
        .exactOptional()
        .meta({ description: 'Only ids that come after this one: where an export broke off.' }),
    }),
    answers: { 200: { description: 'In order of id.', schema: z.string(), type: LINES } },
    handle: async (c, { query: { prefix, after } }) => {
      const scope = sightedPrefix(c.get('caller'), prefix)
      const body = scope === undefined ? '' : exportedLines(belfry, scope, after, () => new Going(c))
      return content(body, LINES)
    },
  })
}

/**
 * A page is read when the reader wants more: a slow one holds up nobody, and nothing piles up. What does not go on to the
 * end is broken off, so that nobody takes a part for the whole.
 */
function exportedLines(
  belfry: Belfry,
  prefix: string,
  first: string | undefined,
  begin: () => Going,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  let after: { readonly after?: string } = first === undefined ? {} : { after: first }
  // Nobody reads what a HEAD is answered with: it begins with the first page.
  let going: Going | undefined
  const next = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<boolean> => {
    going ??= begin()
    going.check()
    const page = await belfry.schedules.list({ prefix, limit: PAGE, ...after })
    const lines = page.items.map(({ id, definition }) => `${JSON.stringify(addInput({ id }, definition))}\n`)
    if (lines.length > 0) controller.enqueue(encoder.encode(lines.join('')))
    if (page.next !== undefined) after = { after: page.next }
    return page.next !== undefined
  }
  return new ReadableStream(
    {
      async pull(controller) {
        let isMore = false
        try {
          isMore = await next(controller)
          if (!isMore) controller.close()
        } finally {
          if (!isMore) going?.end()
        }
      },
      cancel: () => going?.end(),
    },
    { highWaterMark: 0 },
  )
}

function importRoute(belfry: Belfry, { limits }: ParsedServerOptions): Route {
  return route({
    ...{ method: 'post', path: '/v1/schedules:import', id: 'importSchedules', tag: TAG, role: 'operator' },
    summary: 'Takes schedules as lines, however many. Lines that are wrong are reported, and the others are written.',
    query: z.strictObject({
      name: name.exactOptional(),
      firstLine: z.coerce
        .number()
        .int()
        .min(1)
        .max(MAX_LINE)
        .default(1)
        .meta({ description: 'The number of the first line sent.' }),
    }),
    stream: { type: LINES, description: 'A schedule a line, with its id: {"id": "a", "every": "1h", "job": "b"}' },
    answers: { 200: { description: 'All lines were taken.', schema: imported } },
    handle: async (c, { query }) => {
      checkType(c)
      const work = new ScheduleImport(belfry, c.get('caller'), query.firstLine)
      const notes = new Notes(belfry, c.get('caller'), query.name, query.firstLine)
      try {
        await takeAll(c, work, notes, limits)
      } catch (error) {
        await work.settle()
        await notes.write(work.counts, false).catch(() => {})
        throw brokenOff(error, work.counts, query.firstLine)
      } finally {
        const { taken: _, ...done } = work.counts
        if (done.created + done.updated > 0) {
          await c.env.audit(c.get('caller'), 'schedule.import', c.get('caller').prefix ?? '*', { ...done })
        }
      }
      await notes.write(work.counts, true)
      return json({ ...work.counts, nextLine: query.firstLine + work.counts.taken, errors: work.errors })
    },
  })
}

async function takeAll(c: ServerContext, work: ScheduleImport, notes: Notes, limits: BodyLimits): Promise<void> {
  const going = new Going(c)
  const { bodyBytes: maxLine, bodyMs } = limits
  try {
    for await (const lines of textLines(bodyParts(c.req.raw, c.env.info.body, bodyMs), maxLine)) {
      for (const line of lines) {
        if ('text' in line) await work.take(line.text)
        else await work.refuse('BODY_TOO_LARGE', `the line is longer than ${maxLine} characters`)
      }
      await notes.writeNowAndThen(work.counts)
      going.check()
    }
    await work.end()
  } finally {
    going.end()
  }
}

/** Says how far it got, so that the rest can be sent. */
function brokenOff(error: unknown, { taken, ...rest }: ImportCounts, first: number): Problem {
  const found = error instanceof NotText ? problem(400, 'JSON_INVALID', 'the body is not UTF-8') : toProblem(error)
  const { status, code, message, options } = found
  return problem(status, code, `${message} (after ${taken} lines)`, {
    ...options,
    hint: `send the lines from number ${first + taken} on`,
    members: { taken, nextLine: first + taken, ...rest },
  })
}

function checkType(c: ServerContext): void {
  const type = (c.req.header('content-type') ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
  if (['application/x-ndjson', 'application/ndjson', 'application/jsonl'].includes(type)) return
  throw problem(415, 'MEDIA_TYPE_UNSUPPORTED', `the body is "${type.slice(0, 100)}"; send ${LINES}`)
}

/** What is known of a named import, for those whose connection broke. */
class Notes {
  readonly #belfry: Belfry
  readonly #id: string | undefined
  readonly #first: number
  #writtenAt = systemClock.monotonic()

  constructor(belfry: Belfry, caller: Caller, name: string | undefined, first: number) {
    this.#belfry = belfry
    this.#id = name === undefined ? undefined : noteId(caller, name)
    this.#first = first
  }

  async writeNowAndThen(counts: ImportCounts): Promise<void> {
    if (systemClock.monotonic() - this.#writtenAt >= NOTE_MS) await this.write(counts, false)
  }

  async write(counts: ImportCounts, done: boolean): Promise<void> {
    if (this.#id === undefined) return
    this.#writtenAt = systemClock.monotonic()
    const body: Json = { ...counts, nextLine: this.#first + counts.taken, done }
    await this.#belfry.records.put({ kind: KIND, id: this.#id, body, ttlMs: KEPT_MS })
  }
}

function noteId(caller: Caller, name: string): string {
  return createHash('sha256')
    .update(JSON.stringify([caller.name, name]))
    .digest('hex')
}

function progressRoute(belfry: Belfry): Route {
  return route({
    ...{ method: 'get', path: '/v1/schedules:import', id: 'getImport', tag: TAG, role: 'operator' },
    summary: 'How far a named import got: the rest begins at `nextLine`.',
    query: z.strictObject({ name }),
    answers: { 200: { description: 'As of the last second.', schema: importProgress } },
    handle: async (c, { query }) => {
      const record = await belfry.records.get(KIND, noteId(c.get('caller'), query.name))
      if (record === undefined) throw problem(404, 'NOT_FOUND', `there was no import named "${query.name}"`)
      return json(importProgress.parse(record.body))
    },
  })
}

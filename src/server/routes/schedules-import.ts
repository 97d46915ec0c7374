/** POST /v1/schedules:import: schedules as NDJSON, and GET for the progress of a named import. */
import { createHmac } from 'node:crypto'
import { z } from 'zod'
import type { Belfry } from '../../belfry.js'
import type { Json } from '../../core/checks/json.js'
import { systemClock } from '../../core/clock.js'
import { breather } from '../../core/in-turns.js'
import { CancelToken } from '../http/cancel-token.js'
import { type BodyLimits, bodyParts, mediaType } from '../http/json-body.js'
import { type Problem, problem, toProblem } from '../http/problem.js'
import { json } from '../http/reply.js'
import { type Route, route, type ServerContext } from '../http/route.js'
import { NotText, textLines } from '../http/text-lines.js'
import type { ParsedServerOptions } from '../server-options.js'
import { digits } from '../shapes/fields.js'
import { scheduleLine } from '../shapes/schedule.js'
import { imported, importProgress } from '../shapes/schedule-answers.js'
import { type ImportCounts, LineImport } from './import-lines.js'

const TAG = 'schedules'
const NDJSON = 'application/x-ndjson'
const MEDIA_TYPES = [NDJSON, 'application/ndjson', 'application/jsonl']
/** The record kind under which the progress of named imports is stored. */
const KIND = 'import'
const KEPT_MS = 7 * 24 * 3_600_000
/** How often a running import stores its progress. */
const PROGRESS_MS = 1_000
const MAX_LINE = 1_000_000_000_000

const name = z
  .string()
  .min(1)
  .max(255)
  .meta({ description: 'Names the import, so that its progress can be asked for after a broken connection.' })

export function importRoutes(belfry: Belfry, options: ParsedServerOptions): readonly Route[] {
  return [importRoute(belfry, options), progressRoute(belfry)]
}

function importRoute(belfry: Belfry, { limits }: ParsedServerOptions): Route {
  return route({
    ...{ method: 'post', path: '/v1/schedules:import', id: 'importSchedules', tag: TAG, role: 'operator' },
    summary: 'Takes any number of schedules as lines. Invalid lines are reported, and the others are written.',
    query: z.strictObject({
      name: name.exactOptional(),
      firstLine: digits(1, MAX_LINE).default(1).meta({ description: 'The number of the first line sent.' }),
    }),
    stream: {
      type: NDJSON,
      description: 'A schedule a line, with its id: {"id": "a", "every": "1h", "job": "b"}',
      line: scheduleLine,
    },
    answers: { 200: { description: 'All lines were taken.', schema: imported } },
    handle: async (c, { query }) => {
      checkType(c)
      c.env.pace.begin(c.get('caller'))
      const lines = new LineImport(belfry, c.env.usage, c.get('caller'), query.firstLine, limits.bodyBytes)
      const progress = new Progress(belfry, await progressId(c, query.name), query.firstLine)
      try {
        await takeAll(c, lines, progress, limits)
      } catch (error) {
        await lines.settle()
        await progress.store(lines.counts, false).catch(() => {})
        throw interrupted(error, lines.counts, query.firstLine)
      } finally {
        const { taken: _, ...done } = lines.counts
        if (done.created + done.updated > 0) {
          await c.env.audit(c.get('caller'), 'schedule.import', c.get('caller').prefix ?? '*', { ...done })
        }
      }
      await progress.store(lines.counts, true)
      return json({ ...lines.counts, nextLine: query.firstLine + lines.counts.taken, errors: lines.errors })
    },
  })
}

async function takeAll(c: ServerContext, into: LineImport, progress: Progress, limits: BodyLimits): Promise<void> {
  const cancelToken = new CancelToken(c)
  const { bodyBytes: maxLine, bodyMs } = limits
  const breathe = breather()
  try {
    for await (const lines of textLines(bodyParts(c.req.raw, c.env.info, bodyMs), maxLine)) {
      for (const line of lines) {
        if ('text' in line) await into.take(line.text)
        else await into.refuse('BODY_TOO_LARGE', `the line is longer than ${maxLine} characters`)
        await breathe()
      }
      await progress.storeIfDue(into.counts)
      cancelToken.check()
      await c.env.pace.take(c.get('caller'), lines.length, () => cancelToken.check())
    }
    await into.end()
  } finally {
    cancelToken.end()
  }
}

/** The error of an interrupted import, with the line from which the client can resume. */
function interrupted(error: unknown, { taken, ...rest }: ImportCounts, first: number): Problem {
  const found = error instanceof NotText ? problem(400, 'JSON_INVALID', 'the body is not UTF-8') : toProblem(error)
  const { status, code, message, options } = found
  return problem(status, code, `${message} (after ${taken} lines)`, {
    ...options,
    hint: `send the lines from number ${first + taken} on`,
    members: { taken, nextLine: first + taken, ...rest },
  })
}

function checkType(c: ServerContext): void {
  const type = mediaType(c.req.raw)
  if (MEDIA_TYPES.includes(type)) return
  throw problem(415, 'MEDIA_TYPE_UNSUPPORTED', `the body is "${type.slice(0, 100)}"; send ${NDJSON}`)
}

/** Stores how far a named import has got. An import without a name stores nothing. */
class Progress {
  readonly #belfry: Belfry
  readonly #id: string | undefined
  readonly #first: number
  #storedAt = systemClock.monotonic()

  constructor(belfry: Belfry, id: string | undefined, first: number) {
    this.#belfry = belfry
    this.#id = id
    this.#first = first
  }

  async storeIfDue(counts: ImportCounts): Promise<void> {
    if (systemClock.monotonic() - this.#storedAt >= PROGRESS_MS) await this.store(counts, false)
  }

  async store(counts: ImportCounts, done: boolean): Promise<void> {
    if (this.#id === undefined) return
    this.#storedAt = systemClock.monotonic()
    const body: Json = { ...counts, nextLine: this.#first + counts.taken, done }
    await this.#belfry.records.put({ kind: KIND, id: this.#id, body, ttlMs: KEPT_MS })
  }
}

/** The caller's own record of an import with this name; undefined without a name. */
async function progressId(c: ServerContext, name: string): Promise<string>
async function progressId(c: ServerContext, name: string | undefined): Promise<string | undefined>
async function progressId(c: ServerContext, name: string | undefined): Promise<string | undefined> {
  if (name === undefined) return undefined
  return createHmac('sha256', await c.env.secret.key('import'))
    .update(JSON.stringify([c.get('caller').name, name]))
    .digest('hex')
}

function progressRoute(belfry: Belfry): Route {
  return route({
    ...{ method: 'get', path: '/v1/schedules:import', id: 'getImport', tag: TAG, role: 'operator', refuses: [404] },
    summary: 'How far a named import has got: the rest begins at `nextLine`.',
    query: z.strictObject({ name }),
    answers: { 200: { description: 'As of the last second.', schema: importProgress } },
    handle: async (c, { query }) => {
      const record = await belfry.records.get(KIND, await progressId(c, query.name))
      if (record === undefined) throw problem(404, 'NOT_FOUND', `there was no import named "${query.name}"`)
      return json(importProgress.parse(record.body))
    },
  })
}

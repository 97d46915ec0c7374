import type { ScheduleLine } from '../server/shapes/schedule.js'
import type { ImportResult } from '../server/shapes/schedule-answers.js'
import type { Requests } from './request.js'

/**
 * The size of a part. Each part is a request of its own, because browsers cannot send streams and a failed part is soon
 * sent again.
 */
const PART_LINES = 10_000
const PART_LENGTH = 4_000_000
const MAX_ERRORS = 1_000

interface PartOptions {
  readonly name?: string | undefined
  readonly firstLine?: number | undefined
  readonly signal?: AbortSignal | undefined
}

export function importPart(
  requests: Requests,
  path: string,
  part: string,
  { name, firstLine, signal }: PartOptions,
): Promise<ImportResult> {
  const text = { type: 'application/x-ndjson', body: part }
  return requests.json(path, {
    ...{ method: 'POST', text, query: { name, firstLine } },
    ...(signal === undefined ? {} : { signal }),
  })
}

export async function importLines(
  requests: Requests,
  path: string,
  lines: Iterable<ScheduleLine> | AsyncIterable<ScheduleLine>,
  {
    name,
    firstLine = 1,
    signal,
  }: { readonly name?: string; readonly firstLine?: number; readonly signal?: AbortSignal },
): Promise<ImportResult> {
  let total: ImportResult = {
    taken: 0,
    created: 0,
    updated: 0,
    unchanged: 0,
    refused: 0,
    nextLine: firstLine,
    errors: [],
  }
  const send = async (part: readonly string[]) => {
    const options = { name, firstLine: total.nextLine, signal }
    total = addImported(total, await importPart(requests, path, part.join(''), options))
  }
  let part: string[] = []
  let length = 0
  for await (const line of lines) {
    const text = `${JSON.stringify(line)}\n`
    part.push(text)
    length += text.length
    if (part.length < PART_LINES && length < PART_LENGTH) continue
    await send(part)
    part = []
    length = 0
  }
  if (part.length > 0) await send(part)
  return total
}

/** The sum of two consecutive parts of an import. */
export function addImported(one: ImportResult, other: ImportResult): ImportResult {
  return {
    taken: one.taken + other.taken,
    created: one.created + other.created,
    updated: one.updated + other.updated,
    unchanged: one.unchanged + other.unchanged,
    refused: one.refused + other.refused,
    nextLine: other.nextLine,
    errors: [...one.errors, ...other.errors].slice(0, MAX_ERRORS),
  }
}

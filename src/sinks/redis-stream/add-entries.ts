/** Adds entries to a stream, each once: see `add-entries.lua`. */
import { createHash } from 'node:crypto'
import TEXT from './add-entries.lua'

const SHA = createHash('sha1').update(TEXT).digest('hex')

export interface Entry {
  readonly dedupeId: string
  /** Names and values of the entry's fields. */
  readonly names: readonly string[]
  readonly values: readonly string[]
}

/** Sends a command to the node that has the key. */
export type Send = (key: string, command: readonly string[]) => Promise<unknown>

/**
 * Resolves to one answer per entry: undefined when the entry is in the stream, else the server's error. All entries
 * must have the same field names, which are sent once.
 */
export async function addEntries(
  send: Send,
  stream: string,
  settings: { readonly windowMs: number; readonly maxLength: number },
  entries: readonly Entry[],
): Promise<(string | undefined)[]> {
  const { windowMs, maxLength } = settings
  const names = entries[0]?.names ?? []
  const numbers = [windowMs, maxLength, names.length].map(String)
  const command = ['EVALSHA', SHA, '2', stream, seenKey(stream), ...numbers, ...names]
  for (const { dedupeId, values } of entries) command.push(dedupeId, ...values)
  const answer = await send(stream, command).catch((error: unknown) => {
    if (!/\bNOSCRIPT\b/.test(error instanceof Error ? error.message : '')) throw error
    return send(stream, ['EVAL', TEXT, ...command.slice(2)])
  })
  const outcomes: readonly unknown[] = Array.isArray(answer) ? answer : []
  return entries.map((_, index) => (Number(outcomes[index]) === 1 ? undefined : String(outcomes[index])))
}

/** The suffix of the keys that hold ids of delivered events. */
export const SEEN = ':belfry-seen'

/** The key that holds the ids of a stream's events. It is in the same cluster slot as the stream. */
function seenKey(stream: string): string {
  return stream.includes('{') ? stream + SEEN : `{${stream}}${SEEN}`
}

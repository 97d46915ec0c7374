/**
 * Adds entries to a stream, each once: the ids of the last while are in a sorted set beside it, by the server's time, and
 * an entry whose id is there already is not added again. All of it is one script, so nobody can come between looking and
 * adding, and whoever sends it a second time because the answer was lost adds nothing.
 *
 * The set has the stream's slot in a cluster. It is as old as the window, and gone when nothing has come for that long.
 */
import { createHash } from 'node:crypto'

const TEXT = `
local stream, seen = KEYS[1], KEYS[2]
local window, most = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if window > 0 then redis.call('ZREMRANGEBYSCORE', seen, '-inf', now - window) end
local names = tonumber(ARGV[3])
local entry = {}
for field = 1, names do entry[2 * field - 1] = ARGV[3 + field] end
local outcomes = {}
for at = 4 + names, #ARGV, names + 1 do
  local id, outcome = ARGV[at], 1
  if window == 0 or redis.call('ZADD', seen, 'NX', now, id) == 1 then
    for field = 1, names do entry[2 * field] = ARGV[at + field] end
    local added = redis.pcall('XADD', stream, '*', unpack(entry))
    if type(added) == 'table' and added.err then
      if window > 0 then redis.call('ZREM', seen, id) end
      outcome = added.err
    end
  end
  outcomes[#outcomes + 1] = outcome
end
if window > 0 then redis.call('PEXPIRE', seen, window) end
if most > 0 then redis.pcall('XTRIM', stream, 'MAXLEN', '~', most) end
return outcomes`

const SHA = createHash('sha1').update(TEXT).digest('hex')

export interface Entry {
  readonly dedupeId: string
  /** Names of its fields, and what they hold. */
  readonly names: readonly string[]
  readonly values: readonly string[]
}

/** Sends a command to whoever has the key. */
export type Send = (key: string, command: readonly string[]) => Promise<unknown>

/**
 * One answer per entry: undefined when it is in the stream, else what the server has against it. All of them have fields
 * of the same names, which are sent once.
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

/** In the same slot as the stream. */
function seenKey(stream: string): string {
  return stream.includes('{') ? `${stream}:belfry-seen` : `{${stream}}:belfry-seen`
}

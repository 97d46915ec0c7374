/** Scripts: Lua that is sent by its digest, and whole only to a server that does not know it yet. */
import { createHash } from 'node:crypto'
import { BASE, CLOCK, HAND_TURNED_CLOCK, type ScriptClock, SHIFTED_CLOCK } from '../lua/base.js'
import { HAND_ON } from '../lua/hand-on.js'
import { NAMES } from '../lua/names.js'
import { RUN_CHANGES } from '../lua/run-changes.js'
import { RUN_ENDINGS } from '../lua/run-endings.js'
import { RUN_RECORD } from '../lua/run-record.js'

export interface Script {
  readonly text: string
  readonly sha: string
}

/** Whose time it is: the server's; for benches the server's and a bit; for tests one that is turned by hand. */
export type ClockKind = 'server' | 'shifted' | 'handTurned'

/** A script for each kind of clock. */
export type ScriptSource = Readonly<Record<ClockKind, Script>>

export function script(...parts: readonly string[]): ScriptSource {
  return clocked(({ time, more }) => [time, more, BASE, ...parts].join('\n'))
}

/** A script over runs and keys: all that can happen to them is at hand. */
export function runScript(body: string): ScriptSource {
  return script(RUN_RECORD, NAMES, HAND_ON, RUN_CHANGES, RUN_ENDINGS, body)
}

/** A script for which even a few functions would be many: it has the time as text, and nothing else. */
export function bareScript(body: string): ScriptSource {
  return clocked(({ stamp }) => stamp + body)
}

function clocked(textFor: (clock: ScriptClock) => string): ScriptSource {
  return {
    server: digested(textFor(CLOCK)),
    shifted: digested(textFor(SHIFTED_CLOCK)),
    handTurned: digested(textFor(HAND_TURNED_CLOCK)),
  }
}

/** A script that asks for the time only where it has to: there it puts what it is given. */
export function clockedScript(textFor: (time: string) => string): ScriptSource {
  return clocked(({ time }) => textFor(time))
}

function digested(text: string): Script {
  return { text, sha: createHash('sha1').update(text).digest('hex') }
}

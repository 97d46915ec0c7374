/** Scripts: Lua that is sent by its digest, and whole only to a server that does not know it yet. */
import { createHash } from 'node:crypto'
import { BASE, CLOCK, HAND_TURNED_CLOCK } from './lua/base.js'
import { NAMES } from './lua/names.js'
import { RUN_CHANGES } from './lua/run-changes.js'
import { RUN_RECORD } from './lua/run-record.js'

export interface Script {
  readonly text: string
  readonly sha: string
}

/** A script in two forms: with the server's clock, and with one that tests turn by hand. */
export interface ScriptSource {
  readonly real: Script
  readonly handTurned: Script
}

export function script(...parts: readonly string[]): ScriptSource {
  const body = [BASE, ...parts].join('\n')
  return { real: digested(CLOCK + body), handTurned: digested(HAND_TURNED_CLOCK + body) }
}

/** A script over runs and keys: all that can happen to them is at hand. */
export function runScript(body: string): ScriptSource {
  return script(RUN_RECORD, NAMES, RUN_CHANGES, body)
}

/** A script for which even a few functions would be many: it has the clock, and nothing else. */
export function bareScript(body: string): ScriptSource {
  return { real: digested(CLOCK + body), handTurned: digested(HAND_TURNED_CLOCK + body) }
}

function digested(text: string): Script {
  return { text, sha: createHash('sha1').update(text).digest('hex') }
}

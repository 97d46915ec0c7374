/** Parts of a run as text, the same in every store: `job:send-digest`, `sink:kafka`. */
import type { Json } from '../checks/json.js'
import type { Target } from './run.js'

export function targetName(target: Target): string {
  return 'job' in target ? `job:${target.job}` : `sink:${target.sink}`
}

export function targetOf(name: string, options: string | null): Target {
  if (name.startsWith('job:')) return { job: name.slice(4) }
  const sink = name.slice(5)
  return options === null ? { sink } : { sink, options: fromText(options) }
}

export function targetOptions(target: Target): string | null {
  return 'sink' in target && target.options !== undefined ? toText(target.options) : null
}

export function toText(value: Json): string {
  return value === null ? 'null' : JSON.stringify(value)
}

export function fromText(text: string): Json {
  return text === 'null' ? null : (JSON.parse(text) as Json)
}

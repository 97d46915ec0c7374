/** How parts of a run are written as text: the same in every store, so that they say and read the same. */
import type { Json } from './json.js'
import type { Target } from './run.js'

/** Names of jobs and sinks do not meet. */
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

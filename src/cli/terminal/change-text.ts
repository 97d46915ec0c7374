/** Changes of `belfry apply` as a diff: + created, ~ updated field by field, − removed. */
import type { ApplyResult } from '../../client/index.js'
import { cleanLine } from './clean-text.js'
import type { Style } from './style.js'

type Change = ApplyResult['changes'][number]

/** The diff leaves out fields that have their default. */
const DEFAULTS: Readonly<Record<string, unknown>> = {
  payload: null,
  overlap: 'allow',
  missed: 'latest',
  backlog: 'drop',
  priority: 0,
  keep: 'all',
  onFinish: 'remove',
}

export function changeLines({ id, change, before = {}, after = {} }: Change, style: Style): string[] {
  const name = cleanLine(id)
  if (change === 'remove') return [style.red(`− ${name}`)]
  if (change === 'create') {
    return [style.green(`+ ${name}`), ...leaves(after).map(([path, value]) => style.green(`    ${path}: ${value}`))]
  }
  const [old, now] = [new Map(leaves(before)), new Map(leaves(after))]
  const paths = [...new Set([...old.keys(), ...now.keys()])]
  return [
    style.yellow(`~ ${name}`),
    ...paths
      .filter((path) => old.get(path) !== now.get(path))
      .map((path) => fieldLine(path, old.get(path), now.get(path), style)),
  ]
}

function fieldLine(path: string, old: string | undefined, now: string | undefined, style: Style): string {
  if (old === undefined) return style.green(`    ${path}: ${now}`)
  if (now === undefined) return style.red(`    ${path}: ${old} → removed`)
  return `    ${path}: ${style.red(old)} → ${style.green(now)}`
}

/** The values that are not objects, each with its path: `{ missed: { max: 2 } }` gives `["missed.max", "2"]`. */
function leaves(fields: object): [string, string][] {
  return Object.entries(fields)
    .filter(([name, value]) => !(name in DEFAULTS) || DEFAULTS[name] !== value)
    .flatMap(([name, value]) => leavesOf(name, value))
}

function leavesOf(path: string, value: unknown): [string, string][] {
  if (typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length > 0) {
    return Object.entries(value).flatMap(([name, inner]) => leavesOf(`${path}.${name}`, inner))
  }
  return [[cleanLine(path), cleanLine(JSON.stringify(value) ?? '')]]
}

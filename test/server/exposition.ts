/**
 * A strict parser of the Prometheus text format 0.0.4: anything that a scraper may reject is an error. Every sample
 * must belong to a family announced with HELP and TYPE, the samples of a family are contiguous, no series appears
 * twice, and histograms add up.
 */
export interface Family {
  readonly name: string
  readonly type: string
  readonly help: string
  readonly samples: readonly Series[]
}

export interface Series {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*'
const HELP = new RegExp(`^# HELP (${NAME}) (.+)$`)
const TYPE = new RegExp(`^# TYPE (${NAME}) (counter|gauge|histogram)$`)
const SAMPLE = new RegExp(`^(${NAME})(?:\\{(.*)\\})? (\\S+)$`, 's')
const LABEL = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\n|\\")*)"(?:,(?=.)|$)/
const VALUE = /^(?:[+-]?(?:\d+\.?\d*(?:e[+-]?\d+)?|Inf)|NaN)$/i

export function parseExposition(text: string): Map<string, Family> {
  if (!text.endsWith('\n')) throw new Error('the last line has no end')
  const families = new Map<string, Family & { samples: Series[] }>()
  const seen = new Set<string>()
  const lines = text.slice(0, -1).split('\n')
  let current: (Family & { samples: Series[] }) | undefined
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] as string
    if (line.startsWith('#')) {
      const [, name, help] = HELP.exec(line) ?? fail(line, 'neither HELP nor a sample')
      const [, typed, type] = TYPE.exec(lines[at + 1] ?? '') ?? fail(line, 'HELP is not followed by TYPE')
      if (typed !== name) fail(line, 'HELP and TYPE are of different families')
      if (families.has(name as string)) fail(line, 'the family comes twice')
      current = { name: name as string, type: type as string, help: help as string, samples: [] }
      families.set(current.name, current)
      at += 1
      continue
    }
    const series = parseSample(line)
    if (current === undefined || !belongs(series.name, current)) fail(line, 'it stands outside its family')
    const key = `${series.name} ${JSON.stringify(Object.entries(series.labels).sort())}`
    if (seen.has(key)) fail(line, 'the series comes twice')
    seen.add(key)
    current?.samples.push(series)
  }
  for (const family of families.values()) checkFamily(family)
  return families
}

function parseSample(line: string): Series {
  const [, name, inside, text] = SAMPLE.exec(line) ?? fail(line, 'not a sample')
  if (!VALUE.test(text as string)) fail(line, 'its value is no number')
  const labels: Record<string, string> = Object.create(null)
  let rest = inside ?? ''
  if (inside === '') fail(line, 'empty braces')
  while (rest !== '') {
    const [whole, label, value] = LABEL.exec(rest) ?? fail(line, 'its labels are not well-formed')
    if ((label as string) in labels) fail(line, 'a label comes twice')
    labels[label as string] = (value as string).replaceAll(/\\(.)/g, (_, c: string) => (c === 'n' ? '\n' : c))
    rest = rest.slice((whole as string).length)
  }
  return { name: name as string, labels: { ...labels }, value: Number((text as string).replace('Inf', 'Infinity')) }
}

function belongs(name: string, { name: family, type }: Family): boolean {
  return type === 'histogram' ? ['_bucket', '_sum', '_count'].some((end) => name === family + end) : name === family
}

function checkFamily({ name, type, samples }: Family): void {
  if (type === 'counter' && !name.endsWith('_total')) fail(name, 'a counter whose name does not end in _total')
  if (/_(ms|milliseconds|minutes|kb)(_|$)/.test(name)) fail(name, 'not in base units')
  if (type !== 'gauge' && samples.some(({ value }) => !(value >= 0))) fail(name, 'below zero')
  if (type !== 'histogram') return
  const groups = new Map<string, Series[]>()
  for (const series of samples) {
    const { le: _, ...labels } = series.labels
    const key = JSON.stringify(Object.entries(labels).sort())
    groups.set(key, [...(groups.get(key) ?? []), series])
  }
  for (const group of groups.values()) checkHistogram(name, group)
}

function checkHistogram(name: string, group: readonly Series[]): void {
  const buckets = group.filter((series) => series.name === `${name}_bucket`)
  const one = (end: string) => {
    const found = group.filter((series) => series.name === name + end)
    if (found.length !== 1) fail(name, `there is not one ${end}`)
    return found[0] as Series
  }
  const bounds = buckets.map(({ labels }) => (labels.le === '+Inf' ? Number.POSITIVE_INFINITY : Number(labels.le)))
  if (bounds.some((bound, at) => !(bound > (bounds[at - 1] ?? -1)))) fail(name, 'bounds do not rise')
  if (bounds.at(-1) !== Number.POSITIVE_INFINITY) fail(name, 'there is no bucket for +Inf')
  if (buckets.some(({ value }, at) => value < (buckets[at - 1]?.value ?? 0))) fail(name, 'buckets do not add up')
  if (buckets.at(-1)?.value !== one('_count').value) fail(name, 'its count is not that of +Inf')
  one('_sum')
}

function fail(line: string, why: string): never {
  throw new Error(`${why}: ${line.slice(0, 200)}`)
}

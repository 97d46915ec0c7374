/** Every default in the documentation and in the comments of options has the value from `core/defaults.ts`. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { DEFAULTS, LIMITS } from '../../src/core/defaults.js'
import { durationText } from '../../src/time/duration.js'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const { instance, schedule, job, sink, retry, lock, server, serve } = DEFAULTS

/** A duration as the documentation writes it: "15 s", "5 min", "7 days", "one hour". */
function prose(ms: number): string {
  const [, amount, unit = ''] = /^(\d+)(\w+)$/.exec(durationText(ms)) ?? []
  if (unit === 'h' && amount === '1') return 'one hour'
  return `${amount} ${{ m: 'min', d: 'days' }[unit] ?? unit}`
}

const count = (value: number) => value.toLocaleString('en')

/** The texts that each file must contain: a literal text, or one tied to an option by `row()` or `option()`. */
const CLAIMS: readonly (readonly [file: string, ...texts: readonly (string | RegExp)[]])[] = [
  [
    'docs/getting-started.md',
    row('concurrency', `default ${instance.concurrency}`),
    row('lease', `(${prose(instance.leaseMs)})`),
    row('maxBlock', `default ${prose(instance.maxBlockMs)}`),
    row('poll', `default ${prose(instance.pollMs)}`),
    row('history', `{ maxAge: '${durationText(instance.history.maxAgeMs)}', maxRuns: 1_000_000 }`),
    `\`stopGrace\` (${prose(instance.stopGraceMs)})`,
    row('overlap', `\`${schedule.overlap}\` (default)`),
    row('missed', `\`${schedule.missed.policy}\` (default)`),
    row('priority', `default ${schedule.priority}`),
    row('onFinish', `\`${schedule.onFinish}\` it with its history (default`),
    row('timeout', `default ${prose(job.timeoutMs)}`),
    row('keep', `\`${job.keep}\` (default)`),
    `**When the key is busy**, a tick is ${job.exclusive.whenBusy.tick === 'skip' ? 'skipped' : 'kept'}`,
    `An enqueue, a trigger or a backfill ${job.exclusive.whenBusy.enqueue}s for`,
    row('ttl', `default ${prose(lock.ttlMs)}`),
  ],
  [
    'docs/guarantees.md',
    `after ${prose(instance.history.maxAgeMs)} by default`,
    `after its lease (${prose(instance.leaseMs)} by default)`,
    `its grace (${prose(instance.stopGraceMs)} by default)`,
    `at most \`grace\` (${prose(instance.graceMs)}) late`,
  ],
  [
    'docs/service.md',
    row('store', `\`${serve.store}\``),
    row('host', `\`${serve.host}\``),
    row('port', `\`${serve.port}\``),
    row('grace', `\`${durationText(serve.graceMs)}\``),
    row('maxBody', `\`${server.bodyBytes}\``),
    row('maxBatch', `\`${server.batch}\``),
    row('rate', `\`${server.requestsPerSecond}\``),
    row('cpuRate', `\`${server.cpuMsPerSecond}\``),
    row('maxConnections', `\`${serve.maxConnections}\``),
    row('addressRate', `\`${serve.requestsPerSecondOfAddress}\``),
    row('guessRate', `\`${serve.wrongTokensPerSecond}\``),
  ],
  [
    'docs/sinks.md',
    row('concurrency', `| ${sink.concurrency};`),
    row('batch', `| ${sink.batch};`),
    row('linger', `| ${sink.lingerMs} `),
    row('timeout', `| ${prose(sink.timeoutMs)} `),
    row('retry', `| ${sink.retry.attempts}, from ${prose(retry.delayMs)} up to an hour`),
  ],
  ['docs/cpu-bound-jobs.md', row('threads.idle', `default ${prose(instance.threads.idleMs)}`)],
  ['docs/sqlite.md', `at most ${LIMITS.payloadBytes / 1_024} KiB of JSON`],
  ['README.md', `the lease (${prose(instance.leaseMs)} by default)`],
  [
    'src/api/belfry-options.ts',
    option('concurrency', `Default ${instance.concurrency}.`),
    option('lease', `Default ${prose(instance.leaseMs)}.`),
    option('maxBlock', `Default ${prose(instance.maxBlockMs)}.`),
    option('poll', `Default ${prose(instance.pollMs)}.`),
    option('lookahead', `Default ${prose(instance.lookaheadMs)}.`),
    option('grace', `Default ${prose(instance.graceMs)}.`),
    option('batch', `Default ${count(instance.batch)}.`),
    option('history', `Default ${prose(instance.history.maxAgeMs)} and ${count(instance.history.maxRuns)} runs.`),
    option('stopGrace', `Default ${prose(instance.stopGraceMs)}.`),
    option('idle', `Default ${prose(instance.threads.idleMs)}.`),
  ],
  [
    'src/api/schedules/schedule-input.ts',
    option('overlap', `Default ${schedule.overlap}.`),
    option('missed', `Default ${schedule.missed.policy}.`),
    option('priority', `Default ${schedule.priority}.`),
    option('onFinish', `\`${schedule.onFinish}\` it with its history (default)`),
    option('max', `Default ${count(schedule.missed.max)}.`),
  ],
  ['src/api/jobs/job-options.ts', option('timeout', `Default ${prose(job.timeoutMs)}.`)],
  ['src/api/jobs/job-options.ts', option('limit', `Default ${job.exclusive.limit}.`)],
  ['src/api/locks/lock-options.ts', option('ttl', `Default ${prose(lock.ttlMs)}.`)],
  ['src/api/locks/lock-options.ts', option('permits', `Default ${lock.permits}.`)],
  [
    'src/core/sink.ts',
    option('concurrency', `Default ${sink.concurrency}.`),
    option('batch', `Default ${sink.batch}.`),
    option('timeout', `Default ${prose(sink.timeoutMs)}.`),
    option('retry', `Default ${sink.retry.attempts} attempts`),
  ],
  [
    'src/core/runs/retry-policy.ts',
    option('attempts', `Default ${job.retry.attempts}; ${sink.retry.attempts} for sinks.`),
  ],
  ['src/core/runs/retry-policy.ts', option('delay', `Default ${prose(retry.delayMs)}.`)],
  [
    'src/server/server-options.ts',
    option('bodyBytes', `Default ${server.bodyBytes / 1_048_576} MiB.`),
    option('bodyMs', `Default ${count(server.bodyMs)}.`),
    option('batch', `Default ${count(server.batch)}.`),
    option('requestsPerSecond', `Default ${count(server.requestsPerSecond)},`),
  ],
]

/** Matches the text in the row of a table whose first column names the option. */
function row(name: string, text: string): RegExp {
  return new RegExp(`^\\| [^|\\n]*\`${escaped(name)}\`[^\\n]*${escaped(text)}`, 'm')
}

/** Matches the text in the comment above an option's declaration. */
function option(name: string, text: string): RegExp {
  return new RegExp(`${escaped(text)}(?:(?!\\*/)[^])*\\*/\\s+readonly ${name}\\?:`)
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}

const claims = CLAIMS.flatMap(([file, ...texts]) => texts.map((text) => [file, text] as const))

it.each(claims)('%s says %s', (file, text) => {
  const page = readFileSync(join(ROOT, file), 'utf8')
  expect(typeof text === 'string' ? page.replace(/\s+/g, ' ').includes(text) : text.test(page)).toBe(true)
})

/** Texts in the store come from others: whatever they hold, no command lets it control the terminal. */
import { execFile } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { writeLine } from '../../src/cli/terminal/clean-text.js'
import { styleFor } from '../../src/cli/terminal/style.js'
import { type Belfry, createBelfry, silentLogger } from '../../src/index.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { belfry } from './cli-setup.js'

/** Clears the screen, sets the title, rings, goes back, and turns the order of characters: as C0, C1 and bidi characters. */
const HOSTILE = 'a\u001b[2J\u001b]0;x\u0007\r\b\u007f\u0085\u009b2Jb\u202ec\u2066d\u200fe\u061cf\u2028g'
const CONTROLS = /[\p{Cc}\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/u

function expectHarmless(text: string): void {
  expect(CONTROLS.exec(text.replaceAll(/[\n\t]/g, ''))?.[0]?.codePointAt(0)).toBeUndefined()
}

const path = join(mkdtempSync(join(tmpdir(), 'hostile-')), 'belfry.db')
let instance: Belfry
let failed = ''

beforeAll(async () => {
  instance = createBelfry({ store: sqlite({ path }), logger: silentLogger })
  const job = instance.job('shop', {
    retry: { attempts: 1 },
    run: () => {
      throw Object.assign(new Error(HOSTILE), { code: HOSTILE })
    },
  })
  await instance.start()
  await instance.schedules.put('s', { cron: '0 0 1 1 *', job: 'nobody', payload: { [HOSTILE]: HOSTILE } })
  await instance.schedules.pause('s', HOSTILE)
  const { run } = await job.enqueue(HOSTILE)
  failed = run
  await instance.runs.wait(run, { timeout: '20s' }).catch(() => {})
  await instance.freeze(HOSTILE)
}, 60_000)

afterAll(() => instance.stop({ grace: 0 }))

const COMMANDS = () => [
  ['ls'],
  ['get', 's'],
  ['explain', 's', '--at', '2024-01-01T00:00:00Z'],
  ['explain', 's', '--at', '2035-01-01T00:00:00Z'],
  ['next', 's'],
  ['runs'],
  ['run', failed],
  ['retry', failed],
  ['jobs'],
  ['locks'],
  ['instances'],
  ['stats'],
  ['doctor'],
  ['audit'],
  ['export'],
  ['pause', 's', '--note', HOSTILE],
  ['get', HOSTILE],
  ['run', HOSTILE],
]

describe.each(['table', 'json'])('as %s', (format) => {
  it('no command writes them as they are', { timeout: 120_000 }, async () => {
    for (const command of COMMANDS()) {
      const how = command[0] === 'export' ? [] : ['-o', format]
      const { stdout, stderr } = await belfry([...command, '--store', path, ...how])
      expectHarmless(`${stdout}${stderr}`)
    }
  })
})

it('JSON says the same as without the escapes', async () => {
  const { stdout } = await belfry(['get', 's', '--store', path, '-o', 'json'])
  expect(JSON.parse(stdout)).toMatchObject({ pauseNote: HOSTILE, payload: { [HOSTILE]: HOSTILE } })
})

it('neither log of the service writes them as they are', async () => {
  const script = `
    import { serveLog } from ${JSON.stringify(new URL('../../dist/cli/serve/serve-log.js', import.meta.url).href)}
    for (const log of ['text', 'json']) {
      const { logger, say } = await serveLog({ log, logLevel: 'debug' })
      const text = process.argv[1]
      say(text)
      logger.error({ err: { message: text, [text]: text } }, text)
    }`
  const run = promisify(execFile)(process.execPath, ['--input-type=module', '-e', script, HOSTILE])
  const { stdout, stderr } = await run
  expect(stdout).toContain('\\u202e')
  expectHarmless(`${stdout}${stderr}`)
})

it('on a terminal only the colours of the command line pass', () => {
  let written = ''
  const write = (text: string) => {
    written += text
    return true
  }
  const terminal = { isTTY: true, write }
  writeLine(terminal, `${styleFor(terminal).red('x')}${HOSTILE}`)
  const esc = String.fromCharCode(27)
  expectHarmless(written.replace(`${esc}[31m`, '').replace(`${esc}[39m`, ''))
})

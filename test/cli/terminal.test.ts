import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { belfry, type CliSetup, cliSetup } from './cli-setup.js'
import { Screen } from './screen.js'

let setup: CliSetup
let screen: Screen | undefined
const ESCAPE = '\u001b'

beforeAll(async () => {
  setup = await cliSetup('sqlite')
  await setup.instance()
  const long = 'a-schedule-with-a-name-that-goes-on-and-on/and-on'
  const lines = [
    { id: long, cron: '0 9 * * 1-5', timezone: 'America/Argentina/Buenos_Aires', job: 'greet' },
    { id: 'short', every: '15m', job: 'break' },
  ]
  writeFileSync(join(setup.folder, 'two.jsonl'), lines.map((line) => JSON.stringify(line)).join('\n'))
  await belfry(['import', join(setup.folder, 'two.jsonl'), ...setup.store])
  await belfry(['trigger', 'short', '--wait', ...setup.store])
}, 180_000)

afterEach(() => {
  screen?.close()
  screen = undefined
})

afterAll(() => setup.close())

/** A shell with the store in its environment. */
function open(env: Record<string, string> = {}): Screen {
  screen = new Screen(setup.folder, { BELFRY_STORE: setup.store[1] ?? '', ...env })
  return screen
}

describe('in a terminal', () => {
  it('a table has at most 80 columns and colours; NO_COLOR removes them', { timeout: 180_000 }, async () => {
    const coloured = open()
    coloured.type('belfry ls; echo over=$?')
    await coloured.shows(/over=0/)
    const rows = coloured.lines.filter((line) => / (active|STATE)$/.test(line))
    expect(rows).toHaveLength(3)
    expect(rows[1]).toMatch(/^a-schedule-with.*… {2}At 09:00.*… {2}in .* – {2}active$/)
    expect(rows[2]).toMatch(/^short +Every 15 minutes +in \d+ min +failed +[\d.]+ m?s +active$/)
    expect(coloured.painted).toContain(`${ESCAPE}[31mfailed`)
    coloured.close()
    const plain = open({ NO_COLOR: '1' })
    plain.type('belfry ls; echo over=$?')
    await plain.shows(/over=0/)
    expect(plain.painted).toContain('failed')
    expect(plain.painted).not.toContain(ESCAPE)
  })

  it('an import shows a progress bar and removes it at the end', { timeout: 180_000 }, async () => {
    const lines = Array.from({ length: 4_500 }, (_, at) => JSON.stringify({ id: `n/${at}`, every: '1h', job: 'greet' }))
    writeFileSync(join(setup.folder, 'many.jsonl'), lines.join('\n'))
    const shell = open()
    shell.type(`belfry import ${join(setup.folder, 'many.jsonl')}; echo over=$?`)
    await shell.shows(/over=0/)
    expect(shell.raw).toMatch(/█+.*░.* +44%.* 2000 lines/)
    expect(shell.lines.join('\n')).toMatch(/\n4500 created, 0 updated, 0 unchanged, 0 refused\nover=0/)
  })

  it('runs -f continues until Ctrl-C, and restores the terminal', { timeout: 180_000 }, async () => {
    const shell = open()
    shell.type('belfry runs -f --schedule short; echo over=$?')
    await shell.shows(/short {2}failed {2}.*out of paper/)
    expect((await belfry(['trigger', 'short', ...setup.store])).code).toBe(0)
    await shell.shows(/short {2}failed(.|\n)*short {2}failed/)
    shell.press('C-c')
    await shell.shows(/over=0\n/)
    expect(shell.lines.join('\n')).not.toMatch(/Error|at .*\.js/)
  })

  it('a program under a lock owns the terminal and receives Ctrl-C', { timeout: 180_000 }, async () => {
    const shell = open()
    shell.type(`belfry lock exec l -- sh -c 'echo ready; read name; echo "hello $name"; sleep 60'; echo over=$?`)
    await shell.shows(/\nready/)
    shell.type('ana')
    await shell.shows(/hello ana/)
    shell.press('C-z')
    await shell.shows(/Ctrl-Z is ignored/)
    shell.press('C-c')
    await shell.shows(/over=130/)
    expect((await belfry(['locks', '-o', 'json', ...setup.store])).stdout).toBe('[]\n')
  })

  it('Ctrl-C ends a wait for a lock', { timeout: 180_000 }, async () => {
    const shell = open()
    shell.type('belfry lock exec w -- sleep 60 & sleep 2; belfry lock exec w --wait forever -- true; echo over=$?')
    await shell.shows(/waiting for the lock "w"/)
    shell.press('C-c')
    await shell.shows(/interrupted while waiting for the lock "w"\nover=130/)
    shell.type('kill %1; wait')
    await shell.shows(/Done\(143\)/)
  })
})

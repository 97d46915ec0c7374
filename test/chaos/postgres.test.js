// @ts-check
import { expect, it } from 'vitest'
import { chaos } from './chaos.js'
import { repeatCommand } from './repeat-command.js'

const seed = Number(process.env.SEED ?? 550128)
const settings = { store: 'postgres', seconds: 18, processes: 8, schedules: 60, seed }

it(`eight processes with wrong clocks lose no tick and run none twice, whatever is killed, cut or crashed (seed ${seed})`, async () => {
  /** @type {string[]} */
  const story = []
  const { violations, counts } = await chaos({
    ...settings,
    store: { name: 'postgres' },
    say: (line) => story.push(line),
  })
  console.log(JSON.stringify({ seed, ...counts }))
  if (violations.length > 0) console.error([...story, `repeat with: ${repeatCommand(settings)}`].join('\n'))
  expect(violations).toEqual([])
  for (const checked of ['inTurn', 'compared']) expect(counts[checked], checked).toBeGreaterThan(0)
  expect(counts.ticks).toBeGreaterThan(settings.schedules * 20)
  expect(counts.crashes).toBeGreaterThan(0)
  expect(counts.takeoversMeasured).toBeGreaterThan(0)
}, 240_000)

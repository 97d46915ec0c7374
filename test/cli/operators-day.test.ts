import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createBelfry, silentLogger } from '../../src/index.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { cleanEnv, MAIN } from '../e2e/service.js'
import { type CliSetup, cliSetup } from './cli-setup.js'

const PAGE = readFileSync(new URL('../../docs/operators-day.md', import.meta.url), 'utf8')
const BLOCKS = [...PAGE.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, text = '']) => text)

let setup: CliSetup

beforeAll(async () => {
  setup = await cliSetup('sqlite')
}, 180_000)

afterAll(() => setup.close())

/** An app that holds a lock, and whose job `report` has failed once and would succeed now. */
async function openShop() {
  const shop = createBelfry({ store: sqlite({ path: setup.store[1] ?? '' }), app: 'shop', logger: silentLogger })
  let hasPaper = false
  shop.job('send-digest', { run: () => ({ sent: true }) })
  shop.job('report', {
    retry: { attempts: 1 },
    run: () => {
      if (!hasPaper) throw new Error('out of paper')
    },
  })
  await shop.start()
  await shop.schedules.put('shop/digest', { cron: '0 9 * * 1-5', timezone: 'Europe/Berlin', job: 'send-digest' })
  await shop.schedules.put('shop/old', { every: '1d', job: 'report' })
  const { run } = await shop.schedules.trigger('shop/old')
  await shop.runs.wait(run)
  hasPaper = true
  await shop.locks.grant('invoice:42', { ttl: '1h' })
  return shop
}

it('works as the documentation shows', { timeout: 180_000 }, async () => {
  expect(BLOCKS).toHaveLength(8)
  const shop = await openShop()
  const { url } = await setup.service()
  writeFileSync(join(setup.folder, 'belfry'), `#!/bin/sh\nexec "${process.execPath}" "${MAIN}" "$@"\n`, { mode: 0o755 })
  const env = cleanEnv({ PATH: `${setup.folder}:${process.env.PATH ?? ''}`, BELFRY_URL: url })
  const outputs: string[] = []
  for (const block of BLOCKS) {
    const script = ['-euo', 'pipefail', '-c', block]
    const { stdout, stderr } = await promisify(execFile)('bash', script, { env, cwd: setup.folder })
    outputs.push(`${stdout}${stderr}`)
  }
  const [around, why, paused, frozen, applied, dead, lock, doctor] = outputs
  expect(around).toMatch(/shop\/digest +At 09:00(.|\n)*shop\/old .* failed/)
  expect(why).toMatch(/before-creation\nThe schedule was created later(.|\n)*At 09:00(.|\n)*report +1 +no/)
  expect(paused).toMatch(/^2 paused\n(.|\n)*shop\/digest .*paused\nshop\/old .*paused\n(.|\n)*2 resumed\n/)
  expect(frozen).toMatch(/frozen since .*: database maintenance\nruns start again\n/)
  expect(applied).toMatch(
    /~ shop\/digest\n {4}cron: "0 9 \* \* 1-5" → "0 10 \* \* 1-5"\n\+ shop\/report\n(.|\n)*− shop\/old\n/,
  )
  expect(applied).toMatch(/0 to create, 0 to update, 0 to remove, 2 unchanged\n$/)
  expect(dead).toMatch(/error +out of paper\n(.|\n)*1 ready\n(.|\n)*run \S+ {2}succeeded\n/)
  expect(lock).toMatch(/invoice:42 (.|\n)*invoice:42: taken from its holder\n/)
  expect(doctor).toMatch(/^ok {2}store(.|\n)*ok {2}lateness/)
  await shop.stop({ grace: 0 })
})

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { belfry, type CliSetup, cliSetup, KINDS, type Outcome } from './cli-setup.js'

const FILE = `
prefix: shop/
schedules:
  shop/digest:
    cron: 0 9 * * 1-5
    timezone: Europe/Berlin
    job: greet
    payload: { name: eu }
  shop/paper: { cron: "0 0 1 1 *", job: break }
`

describe.each(KINDS)('the command line on %s', (kind) => {
  let setup: CliSetup
  let url = ''

  beforeAll(async () => {
    setup = await cliSetup(kind)
    await setup.instance()
    writeFileSync(join(setup.folder, 'shop.yaml'), FILE)
  }, 180_000)

  afterAll(() => setup.close())

  const on = (way: 'store' | 'url') => {
    const where = () => (way === 'store' ? setup.store : ['--url', url])
    return (...args: string[]): Promise<Outcome> => belfry([...args, ...where()])
  }

  it.each(['store', 'url'] as const)('runs an operator’s commands through --%s', { timeout: 180_000 }, async (way) => {
    if (way === 'url') url = (await setup.service()).url
    const run = on(way)
    const file = join(setup.folder, 'shop.yaml')
    const applied = await run('apply', file, '--prune')
    expect(applied).toMatchObject({ code: 0, stderr: '2 created, 0 updated, 0 removed, 0 unchanged\n' })
    expect(applied.stdout).toContain('+ shop/digest\n    cron: "0 9 * * 1-5"\n    timezone: "Europe/Berlin"\n')

    const broken = await run('trigger', 'shop/paper', '--wait')
    expect({ code: broken.code, stderr: broken.stderr }).toEqual({ code: 1, stderr: '' })
    expect(broken.stdout).toMatch(/^run \S+ {2}failed\n(.|\n)*error +out of paper\n/)

    const listed = await run('ls', 'shop/')
    expect(listed.stdout).toMatch(
      /^ID +WHEN +NEXT +LAST +P95 +STATE\nshop\/digest +At 09:00, .* time +in .* – {2}active\nshop\/paper .* failed +[\d.]+ m?s +active\n$/,
    )

    const paused = await run('pause', '--prefix', 'shop/', '--note', 'stock-taking')
    expect(paused).toMatchObject({
      code: 0,
      stdout: '2 paused\n',
    })
    const [doctor, exported] = await Promise.all([run('doctor', '-o', 'json'), run('export', '--prefix', 'shop/')])
    const { checks } = JSON.parse(doctor.stdout) as { checks: { name: string; about: string; findings: unknown[] }[] }
    const about = new Map(checks.map((check) => [check.name, check]))
    expect([...about.keys()]).toEqual(expect.arrayContaining(['store', 'instances', 'clocks', 'zones', 'jobs', 'keys']))
    expect(about.get('store')?.about).toMatch(
      { sqlite: /^SQLite 3/, postgres: /^Postgres \d/, redis: /^Redis \d/ }[kind],
    )
    const lines = exported.stdout.trim().split('\n')
    expect(lines.map((line) => JSON.parse(line).id)).toEqual(['shop/digest', 'shop/paper'])

    const gone = await run('rm', '--prefix', 'shop/', '--yes', '-o', 'json')
    expect(JSON.parse(gone.stdout)).toHaveLength(2)
  })
})

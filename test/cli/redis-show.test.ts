import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Belfry } from '../../src/index.js'
import { belfry, type CliSetup, cliSetup } from './cli-setup.js'

let setup: CliSetup
let instance: Belfry

beforeAll(async () => {
  setup = await cliSetup('redis')
  instance = await setup.instance()
}, 180_000)

afterAll(() => setup.close())

const show = (...args: string[]) => belfry(['redis', 'show', ...args, ...setup.store])

it('prints a lock, a run and an instance in words', { timeout: 60_000 }, async () => {
  await using lock = await instance.lock('invoice:42', { ttl: '1m' })
  const held = await show('lock:invoice:42')
  expect(held).toMatchObject({ code: 0, stderr: '' })
  expect(held.stdout).toMatch(/\{0\}:lock:invoice:42\n {2}<name> text of a lock or of a key of runs/)
  expect(held.stdout).toContain(`"lastToken": "${lock?.token}"`)
  const [prefix = ''] = held.stdout.split('lock:')
  expect((await show(`${prefix}lock:invoice:42`)).stdout).toBe(held.stdout)

  const { run } = await instance.enqueue('greet', { name: 'ada' })
  const stored = await show('runs', run.slice(0, 16))
  expect(stored.stdout).toContain(`"id": "${run}"`)
  expect(stored.stdout).toMatch(/"payload": \{\n +"name": "ada"/)
  expect((await show('instances')).stdout).toMatch(
    /instances\n {2}sorted set: ids by when their leases run out\n {4}\S+ {2}\d+\n/,
  )
})

it('says so when there is no such key', { timeout: 60_000 }, async () => {
  expect(await show('lock:nobody')).toMatchObject({ code: 1, stderr: 'there is no key "lock:nobody" in this store\n' })
  expect(await show('q:0:job:greet')).toMatchObject({ code: 2, stdout: '' })
  const elsewhere = await belfry(['redis', 'show', 'lock:a', '--store', 'postgres://localhost/app'])
  expect(elsewhere).toMatchObject({ code: 2, stdout: '' })
  expect(elsewhere.stderr).toContain('this is for a Redis store')
})

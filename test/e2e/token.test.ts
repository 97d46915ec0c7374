import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { belfry, curl, jsonBody, run, Service } from './service.js'

let folder = ''
let service: Service | undefined

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'belfry-token-'))
})

afterEach(async () => {
  service?.kill('SIGKILL')
  await service?.exited()
  service = undefined
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

const withToken = (token: string) => ['-H', `Authorization: Bearer ${token}`]

describe('belfry token', () => {
  it('creates, lists and revokes API tokens', { timeout: 180_000 }, async () => {
    const store = ['--store', join(folder, 'tokens.db')]
    const made = await belfry([
      'token',
      'create',
      ...store,
      '--role',
      'operator',
      '--prefix',
      'billing/',
      '--jobs',
      'billing/*,mail',
      '--max-schedules',
      '1',
      '--name',
      'ana',
      '--expires',
      '1d',
    ])
    expect(made.code).toBe(0)
    expect(made.stdout).toMatch(/^belfry_[a-z2-7]{12}_[\w-]{43}\n$/)
    expect(made.stderr).toMatch(
      /^token [a-z2-7]{12}: operator on "billing\/", jobs "billing\/\*", "mail" for "ana", until .* UTC\. It is shown only once:\n$/,
    )
    const token = made.stdout.trim()
    const id = token.slice(7, 19)
    const listed = await belfry(['token', 'list', ...store])
    expect(listed.stdout).toMatch(
      new RegExp(
        `^ID +ROLE +PREFIX +JOBS +SINKS +NAME +CREATED \\(UTC\\) +EXPIRES \\(UTC\\)\n${id} +operator +billing/ +billing/\\*,mail +ana +20.* 20`,
      ),
    )
    expect(listed.stdout).not.toContain(token.slice(-43))
    expect(JSON.parse((await belfry(['token', 'list', ...store, '-o', 'json'])).stdout)).toEqual([
      expect.objectContaining({
        ...{ id, name: 'ana', role: 'operator', prefix: 'billing/' },
        ...{ jobs: ['billing/*', 'mail'], quota: { schedules: 1 } },
      }),
    ])

    service = await Service.start([...store, '--port', '0', '--auth', 'tokens', '--log', 'json'])
    const { url } = service
    expect((await curl(`${url}/v1/schedules`)).status).toBe(401)
    expect((await curl(`${url}/v1/schedules`, ...withToken(token))).status).toBe(200)
    const body = { every: '1h', job: 'billing/x', payload: { card: 'visa-4111' } }
    expect((await curl(`${url}/v1/schedules/shop%2F1`, ...withToken(token), ...jsonBody('PUT', body))).status).toBe(403)
    expect((await curl(`${url}/v1/schedules/billing%2F1`, ...withToken(token), ...jsonBody('PUT', body))).status).toBe(
      201,
    )
    expect((await curl(`${url}/v1/schedules/billing%2F2`, ...withToken(token), ...jsonBody('PUT', body))).status).toBe(
      409,
    )

    const revoked = await belfry(['token', 'revoke', id, ...store])
    expect({ code: revoked.code, stderr: revoked.stderr }).toEqual({ code: 0, stderr: `token ${id}: revoked\n` })
    const status = async () => (await curl(`${url}/v1/schedules`, ...withToken(token))).status
    await expect.poll(status, { timeout: 10_000, interval: 100 }).toBe(401)
    expect((await belfry(['token', 'revoke', id, ...store])).code).toBe(3)
    const nowhere = ['--store', join(folder, 'nowhere.db')]
    expect((await belfry(['token', 'list', ...nowhere])).code).toBe(5)

    expect(await service.stop()).toBe(0)
    const lines = service.output
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(lines).toContainEqual(
      expect.objectContaining({ level: 'info', msg: 'request', method: 'PUT', status: 201, caller: `ana (${id})` }),
    )
    expect(service.output).not.toContain(token.slice(-43))
    expect(service.output).not.toContain('visa-4111')
  })

  it.each([
    [['create'], /required option '--role <role>' not specified/],
    [['create', '--role', 'root'], /the role "root" is unknown: allowed are viewer, operator, worker, admin/],
    [['create', '--role', 'admin', '--expires', 'soon'], /--expires: /],
    [['list', '-o', 'xml'], /--output: "xml" is not allowed/],
    [['lst'], /Did you mean list/],
  ])('explains what is wrong with %j', async (args, message) => {
    const { code, stdout, stderr } = await belfry(['token', ...args], { BELFRY_STORE: join(folder, 'never.db') })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(message)
  })
})

describe('belfry serve on a public address', () => {
  it('refuses to start without tokens, and requires one with them', { timeout: 60_000 }, async () => {
    const store = ['--store', join(folder, 'public.db')]
    const refused = await belfry(['serve', ...store, '--host', '0.0.0.0', '--port', '0'])
    expect(refused.code).toBe(2)
    expect(refused.stderr).toMatch(/^belfry: there are no tokens, .*belfry token create --role admin\n$/)
    const open = await belfry(['serve', ...store, '--host', '0.0.0.0', '--port', '0', '--auth', 'none'])
    expect(open.code).toBe(2)
    expect(open.stderr).toMatch(/^belfry: without tokens the service must be private to this machine/)
    // With a configured host name other machines can send requests, so a token is required.
    const named = await belfry(['serve', ...store, '--hosts', 'cron.example.com', '--port', '0'])
    expect(named.stderr).toMatch(/there are no tokens/)
    const token = (await belfry(['token', 'create', ...store, '--role', 'admin'])).stdout.trim()
    service = await Service.start([...store, '--host', '0.0.0.0', '--port', '0'])
    const url = service.url.replace('0.0.0.0', '127.0.0.1')
    expect(service.output).toMatch(/listening on http:\/\/0\.0\.0\.0:\d+ · with tokens/)
    expect((await curl(`${url}/v1/schedules`)).status).toBe(401)
    expect((await curl(`${url}/v1/schedules`, ...withToken(token))).status).toBe(200)
    for (const probe of ['/healthz', '/readyz']) expect((await curl(url + probe)).status).toBe(200)
    expect((await curl(`${url}/metrics`)).status).toBe(401)
  })
})

describe('the settings of belfry serve', () => {
  const file = (config: unknown) => {
    const path = join(folder, 'belfry.json')
    writeFileSync(path, typeof config === 'string' ? config : JSON.stringify(config))
    return path
  }

  it('come from the file; the environment overrides the file, and flags override both', {
    timeout: 60_000,
  }, async () => {
    const config = file({
      ...{ store: join(folder, 'file.db'), port: 0, roles: ['api'], log: 'text', openMetrics: true },
      ...{ hosts: ['app.localhost'], auth: 'none' },
    })
    service = await Service.start(['--roles', 'tick'], {
      BELFRY_CONFIG: config,
      BELFRY_STORE: join(folder, 'env.db'),
      BELFRY_ROLES: 'run',
    })
    expect(service.output).toMatch(/env\.db" · tick\n/)
    // Without the role `api` the service has only probes and metrics.
    expect((await curl(`${service.url}/v1/schedules`)).status).toBe(404)
    expect((await curl(`${service.url}/readyz`)).status).toBe(200)
    expect((await curl(`${service.url}/metrics?x=1`)).text).toMatch(/^belfry_up 1$/m)
    expect((await curl(`${service.url}/metrics`, '--head')).status).toBe(200)
  })

  it.each([
    ['a setting that is none', { prot: 1 }, /"prot" is not an option; did you mean "port"\?/],
    ['a value that is none', { port: '80a' }, /belfry\.json: port: "80a" is not allowed/],
    [
      'a role that is none',
      { roles: ['api', 'king'] },
      /belfry\.json: roles: "king" is not allowed; allowed are api, tick, run/,
    ],
    [
      'a proxy that is none',
      { proxies: ['10.0.0.0/99'] },
      /proxies: "10\.0\.0\.0\/99" is neither an address nor a network/,
    ],
    ['no JSON', '{', /the config file ".*" cannot be read/],
    ['a list', [], /options must be an object/],
  ])('are refused with %s', async (_, config, message) => {
    const { code, stdout, stderr } = await belfry(['serve', '--config', file(config)], {
      BELFRY_STORE: join(folder, 'never.db'),
    })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(message)
  })

  it('are refused when the file is missing', async () => {
    const { code, stderr } = await belfry(['serve', '--config', join(folder, 'none.json')])
    expect(code).toBe(2)
    expect(stderr).toMatch(/the config file ".*none\.json" cannot be read/)
  })

  it('limit requests and failed logins per address', { timeout: 60_000 }, async () => {
    const store = join(folder, 'rates.db')
    await belfry(['token', 'create', '--store', store, '--role', 'viewer'])
    const args = ['--store', store, '--port', '0', '--auth', 'tokens', '--guess-rate', '1']
    service = await Service.start(args, { BELFRY_ADDRESS_RATE: '10' })
    const { url } = service
    const ask = async (headers: string) =>
      (await run(['-s', '-w', '%{http_code} ', ...headers.split('|'), ...urls])).stdout
    const urls = Array.from({ length: 50 }, () => ['-o', '/dev/null', `${url}/v1/session`]).flat()
    const guesses = (await ask('-H|Authorization: Bearer x')).trim().split(' ')
    // The first 25 failed logins pass as a burst. For other requests the burst is 40.
    expect(guesses.indexOf('429')).toBeGreaterThanOrEqual(25)
    expect(guesses.indexOf('429')).toBeLessThan(30)
    expect((await ask('-H|X-Nobody: 1')).trim().split(' ')).toContain('429')
  })
})

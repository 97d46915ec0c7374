/** A config file in the current folder may come from somebody else. */
import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { configFile, type RunsCode } from '../../src/cli/settings/config-file.js'
import { targetOf } from '../../src/cli/settings/operator-settings.js'
import { serveSettings, storeSettings } from '../../src/cli/settings/serve-settings.js'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'found-config-'))
})

function write(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

async function target(flags: Record<string, string>, env: Record<string, string>, runsCode: RunsCode = 'never') {
  return targetOf({ flags, env, file: await configFile(flags, env, runsCode, folder) })
}

const TOKEN = { BELFRY_TOKEN: 'belfry_secret' }

describe('a config file that was only found', () => {
  beforeEach(() => void write('belfry.config.json', '{ "url": "http://127.0.0.1:9" }'))

  it('does not choose where the token of the environment is sent', async () => {
    await expect(target({}, TOKEN)).rejects.toMatchObject({
      code: 'OPTION_INVALID',
      message: expect.stringContaining('BELFRY_TOKEN is not sent to the url of belfry.config.json'),
    })
    await expect(target({ token: 'belfry_secret' }, {})).rejects.toThrow('--token is not sent')
  })

  it('chooses the URL where no token is sent, or its own', async () => {
    expect(await target({}, {})).toEqual({ url: 'http://127.0.0.1:9', isDefault: false })
    write('belfry.config.json', '{ "url": "http://127.0.0.1:9", "token": "belfry_own" }')
    expect(await target({}, {})).toMatchObject({ token: 'belfry_own' })
  })

  it('does not prevent a URL of the user’s own from getting the token', async () => {
    const url = 'http://127.0.0.1:8'
    expect(await target({ url }, TOKEN)).toMatchObject({ url, token: 'belfry_secret' })
    expect(await target({}, { ...TOKEN, BELFRY_URL: url })).toMatchObject({ url, token: 'belfry_secret' })
  })

  it('may do so once the user names it', async () => {
    const config = 'belfry.config.json'
    expect(await target({ config }, TOKEN)).toMatchObject({ url: 'http://127.0.0.1:9', token: 'belfry_secret' })
    expect(await target({}, { ...TOKEN, BELFRY_CONFIG: config })).toMatchObject({ token: 'belfry_secret' })
  })
})

describe('a Postgres store of a config file that was only found', () => {
  const PASSWORD = { PGPASSWORD: 'secret' }
  const refusal = {
    code: 'OPTION_INVALID',
    message: expect.stringContaining('PGPASSWORD is not sent to the store of belfry.config.json'),
  }

  it.each([
    'postgres://127.0.0.1:9/shop',
    'postgresql://me@127.0.0.1:9/shop',
    'POSTGRES://127.0.0.1:9/shop',
    'postgres:///shop?host=127.0.0.1',
  ])('does not choose which server gets the Postgres password of the environment: %s', async (store) => {
    write('belfry.config.json', JSON.stringify({ store }))
    await expect(target({}, PASSWORD)).rejects.toMatchObject(refusal)
    const sources = { flags: {}, env: PASSWORD, file: await configFile({}, PASSWORD, 'own', folder) }
    expect(() => serveSettings(sources)).toThrow('PGPASSWORD is not sent')
    expect(() => storeSettings(sources)).toThrow('PGPASSWORD is not sent')
  })

  it('chooses a server that gets no password, or its own, and one that the environment names', async () => {
    for (const [store, env] of [
      ['postgres://127.0.0.1:9/shop', {}],
      ['postgres://me:own@127.0.0.1:9/shop', PASSWORD],
      ['postgres:///shop', PASSWORD],
      ['shop.db', PASSWORD],
    ] as const) {
      write('belfry.config.json', JSON.stringify({ store }))
      expect(await target({}, env)).toEqual({ store })
    }
  })

  it('may choose the server once the user names the file, or the store', async () => {
    const store = 'postgres://127.0.0.1:9/shop'
    write('belfry.config.json', JSON.stringify({ store }))
    expect(await target({ config: 'belfry.config.json' }, PASSWORD)).toEqual({ store })
    expect(await target({ store }, PASSWORD)).toEqual({ store })
    expect(await target({}, { ...PASSWORD, BELFRY_STORE: store })).toEqual({ store })
  })
})

describe('a config file of code that was only found', () => {
  const CODE = 'globalThis.configHasRun = true; export default { store: "x.db" }'

  it('is not run by commands that only ask a service or a store', async () => {
    write('belfry.config.mjs', CODE)
    expect(await target({}, {})).toMatchObject({ isDefault: true })
    expect(globalThis).not.toHaveProperty('configHasRun')
  })

  it('is not run by any command if others can write it', async () => {
    chmodSync(write('belfry.config.mjs', CODE), 0o666)
    await expect(target({}, {}, 'own')).rejects.toThrow('can be written by every user')
    expect(globalThis).not.toHaveProperty('configHasRun')
  })

  it('is run by commands that serve if it belongs to the user, and by every command if it is named', async () => {
    chmodSync(write('belfry.config.mjs', CODE), 0o644)
    expect(await target({}, {}, 'own')).toMatchObject({ store: 'x.db' })
    expect(await target({ config: 'belfry.config.mjs' }, {})).toMatchObject({ store: 'x.db' })
  })
})

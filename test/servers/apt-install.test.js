// @ts-check
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { foundOrInstalled } from './apt-install.js'

let folder = ''

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'belfry-apt-'))
})

afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** A machine whose `apt-get` runs the given script, and records its arguments. */
function machine(/** @type {string} */ apt) {
  const script = (/** @type {string} */ name, /** @type {string} */ text) => {
    writeFileSync(join(folder, name), `#!/bin/sh\n${text}\n`)
    chmodSync(join(folder, name), 0o755)
  }
  script('apt-get', `echo "$DEBIAN_FRONTEND $*" >> ${folder}/asked\n${apt}`)
  script('sudo', 'shift; exec "$@"')
  const server = join(folder, 'server')
  return {
    asked: () =>
      existsSync(join(folder, 'asked')) ? readFileSync(join(folder, 'asked'), 'utf8').trim().split('\n') : [],
    server,
    wanted: {
      what: 'there is no server: install it',
      package_: 'the-server',
      find: () => (existsSync(server) ? server : undefined),
      env: { PATH: `${folder}:/usr/bin:/bin` },
    },
  }
}

describe('a program that the tests need', () => {
  it('is used where it is found, and nothing is installed', () => {
    const { wanted, server, asked } = machine('exit 1')
    writeFileSync(server, '')
    expect(foundOrInstalled(wanted)).toBe(server)
    expect(asked()).toEqual([])
  })

  it('is installed by apt when it is not there', () => {
    const { wanted, server, asked } = machine(`case "$*" in *install*the-server) touch ${folder}/server;; esac`)
    expect(foundOrInstalled(wanted)).toBe(server)
    expect(asked()).toEqual([
      expect.stringMatching(/^noninteractive .*update/),
      expect.stringMatching(/^noninteractive .*install .*-y .*the-server$/),
    ])
  })

  it('fails with a message that says what to do when apt fails', () => {
    const { wanted } = machine('echo "no network" >&2; exit 100')
    expect(() => foundOrInstalled(wanted)).toThrow(
      /there is no server: install it; installing it failed: .*no network/s,
    )
  })

  it('fails when apt has installed its package and the program is still missing', () => {
    const { wanted } = machine('exit 0')
    expect(() => foundOrInstalled(wanted)).toThrow(/not there even after apt installed the-server/)
  })
})

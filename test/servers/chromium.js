// @ts-check
/** Runs a page in Chromium, for tests of what real browsers send and refuse. It resolves no name but localhost. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { foundOrInstalled } from './apt-install.js'
import { findProgram } from './find-program.js'

const WANTED = {
  what: 'there is no Chromium for the tests: install chromium',
  package_: 'chromium',
  find: () => findProgram('chromium') ?? findProgram('chromium-browser') ?? findProgram('google-chrome'),
}

const FLAGS = [
  ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--disable-sync'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-extensions'],
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost',
  '--remote-debugging-port=0',
]

/**
 * Opens a page in a browser of its own, with an empty profile.
 * @param {string} url
 * @returns {import('./chromium.d.ts').OpenBrowser}
 */
export function openBrowser(url) {
  const profile = mkdtempSync(join(tmpdir(), 'chromium-'))
  const process = spawn(foundOrInstalled(WANTED), [...FLAGS, `--user-data-dir=${profile}`, url], { stdio: 'ignore' })
  const ended = once(process, 'exit')
  return {
    async close() {
      process.kill('SIGKILL')
      await ended
    },
  }
}

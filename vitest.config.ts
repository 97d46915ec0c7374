import { readdirSync, readFileSync } from 'node:fs'
import { configDefaults, defineConfig } from 'vitest/config'
import { textModules } from './scripts/text-modules.js'
import { workerEntries } from './scripts/worker-entries.js'

/**
 * Tests without a server or leftovers share their module cache: loading the modules again for each file would take most
 * of their time.
 */
const LIGHT = ['src/**', 'test/{api,architecture,engine,oracle,simulation}/**']

const TESTS = '*.test.{ts,js}'

/** A test that opens a database cannot share its modules: the pools in them end with the file. */
const OPENS_DATABASE = /from '[^']*(?:\/servers\/|\/opened-stores\.js)/
const ofService = readdirSync('test/server', { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.test.ts'))
  .map((file) => `test/server/${file}`)
const lightOfService = ofService.filter((file) => !OPENS_DATABASE.test(readFileSync(file, 'utf8')))

// The chaos tests run separately: vitest.chaos.config.ts.
const exclude = [...configDefaults.exclude, 'test/chaos/**']

export default defineConfig({
  plugins: [textModules(), workerEntries()],
  test: {
    testTimeout: 30_000,
    // Hooks start servers and migrate schemas.
    hookTimeout: 30_000,
    // Many tests mostly wait.
    maxWorkers: 4,
    globalSetup: ['test/servers/temporary-folder.ts', 'test/servers/setup.ts'],
    setupFiles: ['test/regular-expressions.ts'],
    projects: [
      {
        extends: true,
        test: {
          name: 'light',
          include: [...LIGHT.map((folder) => `${folder}/${TESTS}`), ...lightOfService],
          exclude,
          isolate: false,
        },
      },
      {
        extends: true,
        test: { name: 'servers', include: [`test/**/${TESTS}`], exclude: [...exclude, ...LIGHT, ...lightOfService] },
      },
    ],
  },
})

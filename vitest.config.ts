import { configDefaults, defineConfig } from 'vitest/config'
import { textModules } from './scripts/text-modules.js'
import { workerEntries } from './scripts/worker-entries.js'

/** What has no server of its own, and leaves nothing behind: to load it anew for each file would take most of its time. */
const LIGHT = ['src/**', 'test/{api,architecture,engine,oracle,server,simulation}/**']

const TESTS = '*.test.{ts,js}'

// Chaos has a run of its own: vitest.chaos.config.ts.
const exclude = [...configDefaults.exclude, 'test/chaos/**']

export default defineConfig({
  plugins: [textModules(), workerEntries()],
  test: {
    testTimeout: 30_000,
    // Many of them wait more than they work.
    maxWorkers: 4,
    globalSetup: ['test/servers/temporary-folder.ts', 'test/servers/setup.ts'],
    setupFiles: ['test/regular-expressions.ts'],
    projects: [
      {
        extends: true,
        test: { name: 'light', include: LIGHT.map((folder) => `${folder}/${TESTS}`), exclude, isolate: false },
      },
      { extends: true, test: { name: 'servers', include: [`test/**/${TESTS}`], exclude: [...exclude, ...LIGHT] } },
    ],
  },
})

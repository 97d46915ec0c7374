import { configDefaults, defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.{ts,js}'],
    // They have a run of their own: vitest.chaos.config.ts.
    exclude: [...configDefaults.exclude, 'test/chaos/**'],
    testTimeout: 30_000,
    // Many wait more than they work. And to load all that they test anew for each file would take a third of the time.
    maxWorkers: 4,
    isolate: false,
    globalSetup: ['test/servers/temporary-folder.ts', 'test/servers/setup.ts'],
  },
})

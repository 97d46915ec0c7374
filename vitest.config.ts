import { configDefaults, defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.{ts,js}'],
    // They have a run of their own: vitest.chaos.config.ts.
    exclude: [...configDefaults.exclude, 'test/chaos/**'],
    testTimeout: 30_000,
    maxWorkers: 2,
    globalSetup: ['test/servers/temporary-folder.ts', 'test/servers/setup.ts'],
  },
})

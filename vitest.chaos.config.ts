import { defineConfig } from 'vitest/config'

/** Chaos tests start many processes and measure time, so they run one at a time and with nothing else. */
export default defineConfig({
  test: {
    include: ['test/chaos/**/*.test.js'],
    maxWorkers: 1,
    fileParallelism: false,
    globalSetup: ['test/servers/temporary-folder.ts', 'test/servers/setup.ts'],
  },
})

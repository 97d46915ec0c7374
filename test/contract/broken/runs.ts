import type { NewRun } from '../../../src/core/runs/run.js'
import { type BrokenStore, records, withoutHandOff } from './broken-store.js'

function withoutLimit({ key, ...run }: NewRun): NewRun {
  return typeof key === 'object'
    ? { ...run, key: { ...key, limit: 1_000 } }
    : { ...run, ...(key === undefined ? {} : { key }) }
}

export const brokenRuns: readonly BrokenStore[] = [
  {
    fault: 'settles without comparing the token',
    caughtBy: 'a wrong token is stale and changes nothing',
    breaks: (store, state) => ({
      runs: {
        settle: (settlements) =>
          store.runs.settle(
            settlements.map((each) => ({ ...each, token: state.runs.get(each.run)?.token ?? each.token })),
          ),
      },
    }),
  },
  {
    fault: 'returns settled for a stale attempt',
    caughtBy: 'an attempt is stale once the run was claimed again',
    breaks: (store) => ({
      runs: { settle: async (settlements) => (await store.runs.settle(settlements)).map(() => 'settled') },
    }),
  },
  {
    fault: 'settles a repeated settlement twice',
    caughtBy: 'a repeated settlement is `settled` and changes nothing',
    breaks: (store, state) => ({
      runs: {
        async settle(settlements) {
          for (const { run: id, outcome } of settlements) {
            const run = state.runs.get(id)
            if (run?.settledToken !== undefined && outcome.kind === 'retry') run.failures += 1
          }
          return store.runs.settle(settlements)
        },
      },
    }),
  },
  {
    fault: 'gives each attempt of a run the same token',
    caughtBy: 'every attempt of a run has a higher token than the one before',
    breaks: (store, state) => ({
      runs: {
        async claim(request) {
          for (const run of records(state)) if (run.state === 'ready') run.token = undefined
          return store.runs.claim(request)
        },
      },
    }),
  },
  {
    fault: 'starts a run although its key is held',
    caughtBy: 'at most one run holds a key, and other keys are not affected',
    breaks: (store) => ({
      runs: { enqueue: (runs, tx) => store.runs.enqueue(runs.map(withoutLimit), tx) },
    }),
  },
  {
    fault: 'frees a key without handing it on',
    caughtBy: 'a settle hands the key to the oldest waiting run, in the same step',
    breaks: (store, state) => ({
      runs: { settle: (settlements) => withoutHandOff(state, 'key', () => store.runs.settle(settlements)) },
    }),
  },
  {
    fault: 'skips a retry when its key is busy',
    caughtBy: 'a run that has started before waits, even if `whenBusy` is `skip`',
    breaks: (store, state) => ({
      runs: {
        async claim(request) {
          for (const run of records(state)) if (run.key?.whenBusy === 'skip') run.attempt = 0
          return store.runs.claim(request)
        },
      },
    }),
  },
  {
    fault: 'ignores dedupe keys',
    caughtBy: 'of many equal enqueues at once, one succeeds',
    breaks: (store) => ({
      runs: {
        enqueue: (runs, tx) =>
          store.runs.enqueue(
            runs.map(({ dedupe: _, ...run }) => run),
            tx,
          ),
      },
    }),
  },
  {
    fault: 'forgets a dedupe key with its run',
    caughtBy: 'a dedupe key with `keyFor` refuses for that long after the end, whatever the history keeps',
    breaks: (store) => ({
      runs: {
        enqueue: (runs, tx) =>
          store.runs.enqueue(
            runs.map(({ dedupeForMs: _, ...run }) => run),
            tx,
          ),
      },
    }),
  },
  {
    fault: 'counts runs that are not due when a key is checked',
    caughtBy: 'delayed runs neither block a checked key nor are refused by it',
    breaks: (_, state) => ({
      runs: {
        async available(key, limit) {
          return records(state).filter((run) => run.key?.name === key).length < limit
        },
      },
    }),
  },
  {
    fault: 'starts runs while it is frozen',
    caughtBy: 'nothing starts while the store is frozen',
    breaks: (store, state) => ({
      runs: {
        async claim(request) {
          const { frozen } = state
          state.frozen = undefined
          const result = await store.runs.claim(request)
          state.frozen = frozen
          return result
        },
      },
    }),
  },
  {
    fault: 'ignores start deadlines',
    caughtBy: 'a first attempt past its deadline is skipped',
    breaks: (store, state) => ({
      runs: {
        async claim(request) {
          for (const run of records(state)) run.startBy = undefined
          return store.runs.claim(request)
        },
      },
    }),
  },
  {
    fault: 'claims more runs of a job than requested',
    caughtBy: 'only the requested jobs are claimed, each up to its capacity',
    breaks: (store) => ({
      runs: {
        claim: (request) =>
          store.runs.claim({ ...request, jobs: request.jobs.map(({ name }) => ({ name, limit: request.limit })) }),
      },
    }),
  },
  {
    fault: 'claims more runs for a repeated claim',
    caughtBy: 'a repeated claim returns the same runs, and takes no more',
    breaks: (store) => {
      let claims = 0
      return {
        runs: {
          claim(request) {
            claims += 1
            return store.runs.claim({ ...request, claim: claims })
          },
        },
      }
    },
  },
  {
    fault: 'does not count the last failure',
    caughtBy: 'every failure is counted, including the last, and nothing else is',
    breaks: (store, state) => ({
      runs: {
        async settle(settlements) {
          const before = settlements.map(({ run }) => state.runs.get(run)?.failures ?? 0)
          const results = await store.runs.settle(settlements)
          for (const [at, { run: id, outcome }] of settlements.entries()) {
            const run = state.runs.get(id)
            if (run !== undefined && outcome.kind === 'failed') run.failures = before[at] ?? 0
          }
          return results
        },
      },
    }),
  },
  {
    fault: 'treats a negative limit as unlimited',
    caughtBy: 'a list limit must be a whole number of at least 1',
    breaks: (store) => ({
      runs: { list: (query) => store.runs.list({ ...query, limit: query.limit < 0 ? 1_000 : query.limit }) },
    }),
  },
  {
    fault: 'does not count a retry as a failure',
    caughtBy: 'a retry is ready again after its delay, and counts as a failure',
    breaks: (store, state) => ({
      runs: {
        async settle(settlements) {
          const results = await store.runs.settle(settlements)
          for (const { run } of settlements) Object.assign(state.runs.get(run) ?? {}, { failures: 0 })
          return results
        },
      },
    }),
  },
]

import { expect, it } from 'vitest'
import { LOST_MESSAGE } from '../../../core/runs/lost-message.js'
import { MAX_TAKEOVERS } from '../../../core/runs/run.js'
import transitions from './transitions.sql'

it('transitions.sql gives a run up after as many takeovers, and in the same words, as the other stores', () => {
  expect(transitions).toContain(`max_takeovers constant integer := ${MAX_TAKEOVERS};`)
  expect(transitions).toContain(`'${LOST_MESSAGE}'`)
})

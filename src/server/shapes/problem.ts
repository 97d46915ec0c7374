/** The body of a refusal: problem+json (RFC 9457). */
import { z } from 'zod'
import { SERVICE_CODES } from '../http/service-codes.js'

const code = z.enum(SERVICE_CODES).meta({ id: 'ProblemCode', description: 'Stable: match on this.' })

export const fieldError = z
  .strictObject({ pointer: z.string(), message: z.string(), code: code.exactOptional() })
  .meta({ id: 'FieldError' })

export const problemShape = z
  .looseObject({
    type: z.string(),
    title: z.string(),
    status: z.int().min(400).max(599),
    code,
    detail: z.string(),
    hint: z.string().optional(),
    errors: z
      .array(fieldError)
      .optional()
      .meta({ description: 'What is wrong: a JSON pointer into the body, or the name of a parameter or header.' }),
    instance: z.string().optional(),
    requestId: z.string().optional().meta({ description: 'As in the header X-Request-Id and in the log.' }),
  })
  .meta({ id: 'Problem' })

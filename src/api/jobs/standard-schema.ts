import { failure } from '../../core/errors.js'

/** The part of Standard Schema (version 1) that Belfry uses: zod, valibot, arktype and others implement it. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
  }
}

type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] }

interface SchemaIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

export type InputOf<Schema extends StandardSchema> = NonNullable<Schema['~standard']['types']>['input']
export type OutputOf<Schema extends StandardSchema> = NonNullable<Schema['~standard']['types']>['output']

/** Returns the parsed value, or throws an error that names each wrong field. */
export async function validate(schema: StandardSchema, value: unknown, what: string): Promise<unknown> {
  const result = await schema['~standard'].validate(value)
  if (result.issues === undefined) return result.value
  const problems = result.issues.slice(0, 10).map(({ path = [], message }) => `${pathText(path)}${message}`)
  throw Object.assign(failure('PAYLOAD_INVALID', `${what} does not fit its schema: ${problems.join('; ')}`), {
    issues: result.issues,
    retryable: false,
  })
}

function pathText(path: NonNullable<SchemaIssue['path']>): string {
  if (path.length === 0) return ''
  return `${path.map((part) => String(typeof part === 'object' ? part.key : part)).join('.')}: `
}

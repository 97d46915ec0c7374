/**
 * The schema that holds all tables and functions of Belfry. SQL in this store says `belfry.`; `inSchema` puts the real
 * name there.
 */
import { failure, quote } from '../../../core/errors.js'

const NAME = /^[a-z_][a-z0-9_]{0,47}$/

/** Allows only names that need no quoting, so that a name cannot break out of the SQL that contains it. */
export function checkSchema(schema: string): string {
  if (NAME.test(schema) && !schema.startsWith('pg_') && schema !== 'information_schema') return schema
  throw failure(
    'OPTION_INVALID',
    `schema ${quote(schema)} is not allowed: use 1 to 48 lower-case letters, digits and underscores, not beginning with a digit or pg_`,
  )
}

/** Rewrites SQL from the schema `belfry` to the given one. The name is quoted, because it may be a keyword. */
export function inSchema(sql: string, schema: string): string {
  return schema === 'belfry' ? sql : sql.replaceAll(/\bbelfry\./g, `"${schema}".`)
}

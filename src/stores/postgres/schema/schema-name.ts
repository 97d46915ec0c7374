/** The schema that everything of Belfry lives in. All SQL says `belfry.`; `inSchema` puts the real name there. */
import { failure, quote } from '../../../core/errors.js'

const NAME = /^[a-z_][a-z0-9_]{0,47}$/

/** Lower-case letters, digits and underscores: a name that needs no quoting cannot break out of it either. */
export function checkSchema(schema: string): string {
  if (NAME.test(schema) && !schema.startsWith('pg_') && schema !== 'information_schema') return schema
  throw failure(
    'OPTION_INVALID',
    `schema ${quote(schema)} is not allowed: use 1 to 48 lower-case letters, digits and underscores, not beginning with a digit or pg_`,
  )
}

/** SQL that is written for the schema `belfry`, for another one. The quotes are for names that are also keywords. */
export function inSchema(sql: string, schema: string): string {
  return schema === 'belfry' ? sql : sql.replaceAll(/\bbelfry\./g, `"${schema}".`)
}

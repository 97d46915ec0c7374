/**
 * Generates a Prisma client for one table. The folder is inside this repository, because the client imports its runtime
 * by package name. The client needs no engine, and naming one in the environment keeps Prisma from looking for it.
 */
import { execFile } from 'node:child_process'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { PrismaPg } from '@prisma/adapter-pg'
import type pg from 'pg'
import { afterAll } from 'vitest'

interface Effects {
  readonly effect: { create(effect: { readonly data: { readonly what: string } }): PromiseLike<unknown> }
  $queryRawUnsafe(sql: string, ...values: unknown[]): PromiseLike<unknown>
}

interface Prisma extends Effects {
  $transaction<Result>(work: (tx: Effects) => Promise<Result>): Promise<Result>
  $disconnect(): Promise<void>
}

interface Generated {
  readonly PrismaClient: new (options: { readonly adapter: PrismaPg }) => Prisma
}

const FOLDER = fileURLToPath(new URL(`.prisma/${process.pid}`, import.meta.url))

export async function generatePrisma(table: string): Promise<(pool: pg.Pool) => Prisma> {
  const folder = join(FOLDER, table)
  const schema = join(folder, 'schema.prisma')
  await mkdir(folder, { recursive: true })
  await writeFile(schema, schemaOf(table))
  const command = join(dirname(createRequire(import.meta.url).resolve('prisma/package.json')), 'build/index.js')
  const env = { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: '/bin/true', CHECKPOINT_DISABLE: '1' }
  await promisify(execFile)(process.execPath, [command, 'generate', '--schema', schema], { env })
  const { PrismaClient } = (await import(join(folder, 'client/client.ts'))) as Generated
  return (pool) => new PrismaClient({ adapter: new PrismaPg(pool) })
}

function schemaOf(table: string): string {
  return `
generator client {
  provider               = "prisma-client"
  output                 = "./client"
  generatedFileExtension = "ts"
  importFileExtension    = "ts"
}
datasource db {
  provider = "postgresql"
}
model Effect {
  id   Int    @id @default(autoincrement())
  what String
  @@map("${table}")
}
`
}

afterAll(() => rm(FOLDER, { recursive: true, force: true }))

import { describe, expect, it } from 'vitest'
import { onlyStatement, transactionStatements } from './transaction-statements.js'

describe('statements that begin or end a transaction', () => {
  it.each([
    ['commit', 'commit'],
    ['  COMMIT ;', 'COMMIT'],
    ['start  transaction isolation level serializable', 'start transaction isolation level serializable'],
    ["prepare transaction 'x'", "prepare transaction ''"],
    ['-- why\ncommit', 'commit'],
    ['-- why\rcommit', 'commit'],
    ['/* why */ commit', 'commit'],
    ['/* a /* nested */ one */ rollback', 'rollback'],
    ['/**/--\n/* */end', 'end'],
    [';; commit', 'commit'],
    ['select 1; commit', 'commit'],
    ['select 1 as "/*"; commit; select 2 as "*/"', 'commit'],
    ["select '/*'; abort; select '*/'", 'abort'],
    ["select 'it''s'; commit", 'commit'],
    ["select e'it\\'s'; commit", 'commit'],
    ["select 'a\\'; commit", 'commit'],
    ['select $$ ; $$; commit', 'commit'],
    ['select $a$ $$ $a$; commit', 'commit'],
    ['select "a""b"; rollback work', 'rollback work'],
  ])('%j is found', (sql, found) => {
    expect(transactionStatements(sql)).toEqual([found])
  })

  it.each([
    'select 1',
    'rollback to savepoint a',
    'ROLLBACK TRANSACTION TO a',
    'rollback work to savepoint a',
    'savepoint commit',
    'release savepoint a',
    "select 'commit'",
    "select '; commit'",
    'select "; commit"',
    'select $$; commit; $$',
    'do $body$ begin perform 1; end $body$',
    "select e'\\'; commit'",
    '-- ; commit',
    '/* ; commit; /* */ ; commit */ select 1',
    'select case when true then 1 end',
    'prepare plan as select 1',
    'select 1 as $$',
    'insert into beginnings values (1)',
    'create function f() returns int begin atomic select 1; end',
    "select '",
  ])('%j contains none', (sql) => {
    expect(transactionStatements(sql)).toEqual([])
  })

  it('a single statement is recognised, whatever comments surround it', () => {
    expect(onlyStatement("BEGIN /* traceparent='x' */;")).toBe('BEGIN')
    expect(onlyStatement('/* app */ start\n transaction')).toBe('start transaction')
    expect(onlyStatement('begin; select 1')).toBeUndefined()
    expect(onlyStatement('begin; commit')).toBeUndefined()
    expect(onlyStatement('select 1')).toBeUndefined()
  })

  it('a long text is read within a second', () => {
    const values = Array.from({ length: 50_000 }, (_, at) => `(${at}, 'it''s ''commit'' -- /*')`).join(', ')
    const before = performance.now()
    expect(transactionStatements(`insert into t values ${values}`)).toEqual([])
    expect(performance.now() - before).toBeLessThan(1_000)
  })
})

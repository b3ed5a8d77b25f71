-- The agent service's own role, which has its schema and no other: what models read cannot reach decisions or the gate's keys.
-- Run at a new database's first start. In one that exists, as its owner, as often as one likes:
--   REEVE_AGENT_DATABASE_PASSWORD=... psql -v ON_ERROR_STOP=1 -f agent-role.sql reeve
\set ON_ERROR_STOP 1
\getenv password REEVE_AGENT_DATABASE_PASSWORD
select 'create role reeve_agent login' where not exists (select from pg_roles where rolname = 'reeve_agent') \gexec
alter role reeve_agent password :'password';
create schema if not exists agent authorization reeve_agent;

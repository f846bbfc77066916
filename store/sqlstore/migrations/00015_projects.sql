-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- Projects, with their quotas by name as JSON. Until now a project was what something belonged to: each that anything
-- belongs to gets its record, which is as old as the oldest thing. Names of the server's own ones begin with _.

CREATE TABLE projects (
    name       TEXT   NOT NULL PRIMARY KEY,
    created_at BIGINT NOT NULL,
    created_by TEXT   NOT NULL,
    quotas     TEXT   NOT NULL
);

INSERT INTO projects (name, created_at, created_by, quotas)
    SELECT project, MIN(created_at), '', '{}' FROM (
        SELECT project, created_at FROM tokens
        UNION ALL SELECT project, created_at FROM sandboxes
        UNION ALL SELECT project, created_at FROM snapshots
        UNION ALL SELECT project, created_at FROM volumes
        UNION ALL SELECT project, created_at FROM secrets
        UNION ALL SELECT project, created_at FROM skills
        UNION ALL SELECT project, created_at FROM templates
        UNION ALL SELECT project, created_at FROM runs) AS owned
    WHERE project <> '' AND project NOT LIKE '\_%' ESCAPE '\' GROUP BY project;

-- The commands of a project on the last day on which it had any; for projects with a quota of them alone.
CREATE TABLE project_commands (
    project TEXT   NOT NULL PRIMARY KEY,
    day     BIGINT NOT NULL,
    n       BIGINT NOT NULL
);

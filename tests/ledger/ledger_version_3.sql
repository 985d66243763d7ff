-- A ledger as the third version of the tables kept it.
BEGIN TRANSACTION;
CREATE TABLE dpselect_accounts (
    dataset TEXT NOT NULL,
    epsilon DOUBLE NOT NULL,
    delta DOUBLE NOT NULL,
    rho DOUBLE NOT NULL,
    protects TEXT NOT NULL,
    neighbours TEXT NOT NULL,
    composition TEXT NOT NULL,
    created TEXT NOT NULL,
    count INTEGER NOT NULL,
    head TEXT NOT NULL,
    event INTEGER NOT NULL,
    seal TEXT NOT NULL,
    PRIMARY KEY (dataset)
);
INSERT INTO "dpselect_accounts" VALUES('films',10.0,0.001,0.0,'one person','add or remove','basic','2026-11-18T15:29:22.788378+00:00',4,'6adb218035e0e3deedee12e169107f4de93c7f4b51a0eaf7bbcb3dd7412bda62',1,'11a92ddecc5b022a5d34e7572c1aa608de7b866ff530c00bef97b9f1b7b869fe');
INSERT INTO "dpselect_accounts" VALUES('empty',1.0,1.0e-06,0.02435597035933,'one person','add or remove','zcdp','2026-11-18T15:29:23.015917+00:00',0,'f1bacacc947c268b83f7ca6768b755406ff80e0e429b1cf0cd1d8b89b9dda90e',2,'99da457418ca82c2bb637630396e6c02def345116d358b93ab063543021826b6');
CREATE TABLE dpselect_entries (
    dataset TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    time TEXT NOT NULL,
    purpose TEXT NOT NULL,
    parameters TEXT NOT NULL,
    guarantee TEXT NOT NULL,
    epsilon DOUBLE NOT NULL,
    delta DOUBLE NOT NULL,
    rho TEXT NOT NULL,
    secure INTEGER NOT NULL CHECK (secure IN (0, 1)),
    spent_epsilon TEXT NOT NULL,
    spent_delta TEXT NOT NULL,
    spent_rho TEXT NOT NULL,
    agreed TEXT NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL,
    event INTEGER NOT NULL,
    seal TEXT NOT NULL,
    kind TEXT DEFAULT 'charge' NOT NULL,
    once TEXT DEFAULT '' NOT NULL,
    question TEXT DEFAULT '' NOT NULL,
    answer TEXT DEFAULT '' NOT NULL,
    PRIMARY KEY (dataset, sequence),
    FOREIGN KEY(dataset) REFERENCES dpselect_accounts (dataset)
) WITHOUT ROWID;
INSERT INTO "dpselect_entries" VALUES('films',1,'2026-11-18T15:29:23.034454+00:00','first','{"k":3}','{"delta":0.0,"epsilon":0.1,"neighbours":"add or remove","protects":"one person"}',0.1,0.0,'0',1,'3602879701896397/36028797018963968','0','0','f1840cb18d2b38e146c4274f6e860d168b4f834ab8015b0a46332830d81ef7c4','f1840cb18d2b38e146c4274f6e860d168b4f834ab8015b0a46332830d81ef7c4','0cc1c89ab055ab936e4a65c5f04d9fbb6aecedf9c078460b1e6a76dea85e6003',3,'496c740c32dd0a50c6ba18fd7a35e2f2e18d81f067bc1f41c1f8b6dc5d1c5f59','charge','','','');
INSERT INTO "dpselect_entries" VALUES('films',2,'2026-11-18T15:29:23.048445+00:00','naïve ☕','{}','{"delta":0.0,"epsilon":0.5,"neighbours":"add or remove","protects":"one person"}',0.5,0.0,'0',1,'21617278211378381/36028797018963968','0','0','f1840cb18d2b38e146c4274f6e860d168b4f834ab8015b0a46332830d81ef7c4','0cc1c89ab055ab936e4a65c5f04d9fbb6aecedf9c078460b1e6a76dea85e6003','9c12f4367ef49c0a60775c1279c03778306d683e59eab21c93379709489cadc4',4,'6ef4221ed6f83181d21c827f7199682e26f2231dd7d7332600ed7b7457209d4b','charge','week 46','2884c6c86e0aed7a744e39f6e8234c53:eadf35d7e3ab551ec40154e7d47930f961c16d6819645b3e0c90c6bdea03621c','');
INSERT INTO "dpselect_entries" VALUES('films',3,'2026-11-18T15:29:23.062551+00:00','naïve ☕','{}','{"delta":0.0,"epsilon":0.5,"neighbours":"add or remove","protects":"one person"}',0.0,0.0,'0',1,'21617278211378381/36028797018963968','0','0','f1840cb18d2b38e146c4274f6e860d168b4f834ab8015b0a46332830d81ef7c4','9c12f4367ef49c0a60775c1279c03778306d683e59eab21c93379709489cadc4','1461ccfe62cdc12dacdfe15ed6930562ad4e5fdf5c9aa36d433a5936ca226b23',5,'0e6c12c384ae04dd4c078eb59a7bd5fadb03400240250971e81fc25f6d948556','answer','week 46','','{"items":["Up"]}');
INSERT INTO "dpselect_entries" VALUES('films',4,'2026-11-18T15:29:23.070363+00:00','','{}','{"delta":0.0,"epsilon":0.25,"neighbours":"add or remove","protects":"one person"}',0.25,0.0,'0',1,'30624477466119373/36028797018963968','0','0','f1840cb18d2b38e146c4274f6e860d168b4f834ab8015b0a46332830d81ef7c4','1461ccfe62cdc12dacdfe15ed6930562ad4e5fdf5c9aa36d433a5936ca226b23','6adb218035e0e3deedee12e169107f4de93c7f4b51a0eaf7bbcb3dd7412bda62',6,'b0d151aee4af42bd4943186b910b1f4959e66ed53f44320df39ced9c82182ba4','charge','week 47','e8ca45052e1a5741c4eb0adc52d06803:e7fcb9c6f341abfc19b976468540bca3358b1179a818c29a533c1c3f94a1c0fe','');
CREATE TABLE dpselect_ledger (
    version INTEGER NOT NULL,
    events INTEGER NOT NULL,
    seal TEXT NOT NULL
);
INSERT INTO "dpselect_ledger" VALUES(3,6,'b0d151aee4af42bd4943186b910b1f4959e66ed53f44320df39ced9c82182ba4');
CREATE UNIQUE INDEX dpselect_once ON dpselect_entries (dataset, once, kind) WHERE once != '';
COMMIT;

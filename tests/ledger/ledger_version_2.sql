-- A ledger as the second version of the tables kept it.
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
INSERT INTO "dpselect_accounts" VALUES('films',10.0,0.001,0.0,'one person','add or remove','basic','2026-11-18T14:19:11.647253+00:00',3,'e468d714b639afa75a80a028c8a2dbf030d51e7d1cfe91a2dbcb2b4e5dd203d8',1,'3cb3b9f59c865fb628a70e607b00efecda52dc27489382bf222bb07af7f0586f');
INSERT INTO "dpselect_accounts" VALUES('books',2.0,0.0,0.0,'one person','add or remove','basic','2026-11-18T14:19:11.836526+00:00',1,'5dc38063488795095a3aa80528e055061234b3809e01332940eb22d82e1b1d82',2,'4bd6835edbcdefb84ffce25041646963dae3a05a50e05d9d806324d6a4acd46f');
INSERT INTO "dpselect_accounts" VALUES('empty',1.0,1.0e-06,0.02435597035933,'one person','add or remove','zcdp','2026-11-18T14:19:11.956483+00:00',0,'ef0ffa10e6af3ca731ab70bd6c1ec6c7e203a5274d58c4717207cf8cff78c90a',3,'633195e6e4c2e152262736167e86b2006e819a03a974f389127586b348ea4d08');
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
    PRIMARY KEY (dataset, sequence),
    FOREIGN KEY(dataset) REFERENCES dpselect_accounts (dataset)
) WITHOUT ROWID;
INSERT INTO "dpselect_entries" VALUES('books',1,'2026-11-18T14:19:11.988251+00:00','','{}','{"delta":0.0,"epsilon":0.5,"neighbours":"add or remove","protects":"one person"}',0.5,0.0,'0',1,'1/2','0','0','dd7152e2ca82b14ae6ddfc3dfd37d7b69fffcd2ab8521988412c8c30c68aea03','dd7152e2ca82b14ae6ddfc3dfd37d7b69fffcd2ab8521988412c8c30c68aea03','5dc38063488795095a3aa80528e055061234b3809e01332940eb22d82e1b1d82',5,'5b77f1d9daf4ca3f03bb4c9fdf0e444e7ef569686f5f9c38d50c80ec9fa18877');
INSERT INTO "dpselect_entries" VALUES('films',1,'2026-11-18T14:19:11.970515+00:00','first','{"k":3}','{"delta":0.0,"epsilon":0.1,"neighbours":"add or remove","protects":"one person"}',0.1,0.0,'0',1,'3602879701896397/36028797018963968','0','0','b7ca9e512e5d777a78a8072b24cf640d4e40c027c4b19be496fd67c4de58a5f6','b7ca9e512e5d777a78a8072b24cf640d4e40c027c4b19be496fd67c4de58a5f6','b52a0ee8474bbac2ba4b1261752d6bff93e6e4ecc980ea7d308ac9bd17a577ae',4,'15d93fd3787e67fbc0313f13ae05cd0e064e7293273093c8a50b05a788f078c7');
INSERT INTO "dpselect_entries" VALUES('films',2,'2026-11-18T14:19:11.998736+00:00','seeded','{"name":"oneshot"}','{"delta":1e-06,"epsilon":0.2,"neighbours":"add or remove","protects":"one person"}',0.2,1.0e-06,'0',0,'10808639105689191/36028797018963968','4722366482869645/4722366482869645213696','0','b7ca9e512e5d777a78a8072b24cf640d4e40c027c4b19be496fd67c4de58a5f6','b52a0ee8474bbac2ba4b1261752d6bff93e6e4ecc980ea7d308ac9bd17a577ae','c7586799e4ad9adec9fc3c61731738a2ee63d9f663ede7e4a63d1ddcdddbf327',6,'44a61acd46ddeac9d1c395cd466240dca4fd3ecedb7ae27bb192d97fb5e8f709');
INSERT INTO "dpselect_entries" VALUES('films',3,'2026-11-18T14:19:12.008316+00:00','naïve ☕','{}','{"delta":0.0,"epsilon":1.0,"neighbours":"add or remove","protects":"one person","rho":0.25}',1.0,0.0,'0',1,'46837436124653159/36028797018963968','4722366482869645/4722366482869645213696','0','b7ca9e512e5d777a78a8072b24cf640d4e40c027c4b19be496fd67c4de58a5f6','c7586799e4ad9adec9fc3c61731738a2ee63d9f663ede7e4a63d1ddcdddbf327','e468d714b639afa75a80a028c8a2dbf030d51e7d1cfe91a2dbcb2b4e5dd203d8',7,'b95f60b04f75f7d77bab7c748214b966ccc4921bdb158c4855705a01dc461240');
CREATE TABLE dpselect_ledger (
    version INTEGER NOT NULL,
    events INTEGER NOT NULL,
    seal TEXT NOT NULL
);
INSERT INTO "dpselect_ledger" VALUES(2,7,'b95f60b04f75f7d77bab7c748214b966ccc4921bdb158c4855705a01dc461240');
COMMIT;

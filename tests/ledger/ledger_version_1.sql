-- A ledger as the first version of the tables kept it.
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
    PRIMARY KEY (dataset)
);
INSERT INTO "dpselect_accounts" VALUES('films',10.0,0.001,0.0,'one person','add or remove','basic','2026-11-15T21:37:38.925385+00:00',3,'94b1f66716b669d911dd4fb4e04bf91ed11b6d85373549e31967412e27eb27d1');
INSERT INTO "dpselect_accounts" VALUES('books',2.0,0.0,0.0,'one person','add or remove','basic','2026-11-15T21:37:38.950998+00:00',1,'934c5ceb9103f8a9a7a60a11b4b3308ef023c7293e6891022fd715fa989ba678');
INSERT INTO "dpselect_accounts" VALUES('empty',1.0,1.0e-06,0.02435597035933,'one person','add or remove','zcdp','2026-11-15T21:37:39.010665+00:00',0,'3679578a2c8a43cacc74c9275a88931b9be3639a3996a3ce961c50bbac019ecc');
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
    secure BOOLEAN NOT NULL,
    spent_epsilon TEXT NOT NULL,
    spent_delta TEXT NOT NULL,
    spent_rho TEXT NOT NULL,
    agreed TEXT NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (dataset, sequence),
    FOREIGN KEY(dataset) REFERENCES dpselect_accounts (dataset)
) WITHOUT ROWID;
INSERT INTO "dpselect_entries" VALUES('books',1,'2026-11-15T21:37:38.958163+00:00','second','{}','{"delta":0.0,"epsilon":0.5,"neighbours":"add or remove","protects":"one person"}',0.5,0.0,'0',1,'1/2','0','0','fc4a1c2bdb98aa0c0c10ddde2a7fc73926647a1794b878ebf7923a5d99e824e0','fc4a1c2bdb98aa0c0c10ddde2a7fc73926647a1794b878ebf7923a5d99e824e0','934c5ceb9103f8a9a7a60a11b4b3308ef023c7293e6891022fd715fa989ba678');
INSERT INTO "dpselect_entries" VALUES('films',1,'2026-11-15T21:37:38.948714+00:00','first','{"k":3}','{"delta":0.0,"epsilon":0.25,"neighbours":"add or remove","protects":"one person"}',0.25,0.0,'0',1,'1/4','0','0','ed03de0561edbbd199634416886d521c2fa5ba33fa8f671bc6c7a8735a0799cf','ed03de0561edbbd199634416886d521c2fa5ba33fa8f671bc6c7a8735a0799cf','59bc17fdd36d0ea0aa5786058117622584c3662d49abe8370609a72967d85f90');
INSERT INTO "dpselect_entries" VALUES('films',2,'2026-11-15T21:37:38.960664+00:00','third','{}','{"delta":1e-06,"epsilon":0.1,"neighbours":"add or remove","protects":"one person"}',0.1,1.0e-06,'0',0,'12610078956637389/36028797018963968','4722366482869645/4722366482869645213696','0','ed03de0561edbbd199634416886d521c2fa5ba33fa8f671bc6c7a8735a0799cf','59bc17fdd36d0ea0aa5786058117622584c3662d49abe8370609a72967d85f90','aa3223aa6cbcce81c87b66e5867e07a3e430c0298c67f6f07c6a1b4e36604848');
INSERT INTO "dpselect_entries" VALUES('films',3,'2026-11-15T21:37:39.016900+00:00','naïve ☕','{}','{"delta":0.0,"epsilon":1.0,"neighbours":"add or remove","protects":"one person"}',1.0,0.0,'0',1,'48638875975601357/36028797018963968','4722366482869645/4722366482869645213696','0','ed03de0561edbbd199634416886d521c2fa5ba33fa8f671bc6c7a8735a0799cf','aa3223aa6cbcce81c87b66e5867e07a3e430c0298c67f6f07c6a1b4e36604848','94b1f66716b669d911dd4fb4e04bf91ed11b6d85373549e31967412e27eb27d1');
CREATE TABLE dpselect_ledger (
    version INTEGER NOT NULL
);
INSERT INTO "dpselect_ledger" VALUES(1);
COMMIT;

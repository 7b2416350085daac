CREATE TABLE public.heads_inbox_events (
    sequence bigint NOT NULL,
    key bytea NOT NULL,
    session bytea NOT NULL,
    head_id bytea NOT NULL,
    session_id bytea NOT NULL,
    type bytea NOT NULL,
    body bytea NOT NULL,
    checksum bytea NOT NULL,
    state bigint DEFAULT 0 NOT NULL,
    attempts bigint DEFAULT 0 NOT NULL,
    fence bigint DEFAULT 0 NOT NULL,
    redriven bigint DEFAULT 0 NOT NULL,
    received bigint NOT NULL,
    finished bigint,
    error text
);
ALTER TABLE public.heads_inbox_events ALTER COLUMN sequence ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.heads_inbox_events_sequence_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE SEQUENCE public.heads_inbox_fence
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE public.heads_inbox_meta (
    name text NOT NULL,
    value text NOT NULL
);
CREATE TABLE public.heads_inbox_sessions (
    session bytea NOT NULL,
    owner bytea,
    fence bigint NOT NULL,
    next_at bigint NOT NULL
);
INSERT INTO public.heads_inbox_events OVERRIDING SYSTEM VALUE VALUES (1, '\xaaaa368d093ad8f0e82fd15382c9934c26b168f51c442a4af42fc26de63c8f5b', '\xea5318f0e48124837aacaa66ad5d7053d173bae2c6aa704b9d681a746d6b444d', '\x68656164', '\x73657373696f6e', '\x73746172745f636f6e766572736174696f6e', '\x7b226576656e745f74797065223a2273746172745f636f6e766572736174696f6e222c22686561645f6964223a2268656164222c226e756d626572223a302c2273657373696f6e5f6964223a2273657373696f6e222c2274696d657374616d70223a22323032362d31312d32312031383a34393a32342e303030303030227d', '\x76323d9714257ff6a1fa9900797e1235', 0, 0, 0, 0, 1795286965858963, NULL, NULL);
INSERT INTO public.heads_inbox_meta VALUES ('schema', '1');
INSERT INTO public.heads_inbox_meta VALUES ('touched', '1795286965853327');
INSERT INTO public.heads_inbox_sessions VALUES ('\xea5318f0e48124837aacaa66ad5d7053d173bae2c6aa704b9d681a746d6b444d', NULL, 0, 1795286965858963);
SELECT pg_catalog.setval('public.heads_inbox_events_sequence_seq', 1, true);
SELECT pg_catalog.setval('public.heads_inbox_fence', 1, false);
ALTER TABLE ONLY public.heads_inbox_events
    ADD CONSTRAINT heads_inbox_events_key_key UNIQUE (key);
ALTER TABLE ONLY public.heads_inbox_events
    ADD CONSTRAINT heads_inbox_events_pkey PRIMARY KEY (sequence);
ALTER TABLE ONLY public.heads_inbox_meta
    ADD CONSTRAINT heads_inbox_meta_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.heads_inbox_sessions
    ADD CONSTRAINT heads_inbox_sessions_pkey PRIMARY KEY (session);
CREATE INDEX heads_inbox_events_dead ON public.heads_inbox_events USING btree (sequence) WHERE (state = 2);
CREATE INDEX heads_inbox_events_waiting ON public.heads_inbox_events USING btree (session, sequence) WHERE (state = 0);
CREATE INDEX heads_inbox_sessions_due ON public.heads_inbox_sessions USING btree (next_at);

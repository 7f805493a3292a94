"""A stand-in for the LLM providers: a real HTTP server on loopback whose cache counts come from the simulator.

It speaks OpenAI Chat Completions (Groq's and Mistral's too) and Responses, Anthropic Messages, Gemini and Bedrock, with
and without streaming, over HTTP/1.1 and HTTP/2. What it does to a request is told by one header, see ``plan``; what it
billed is kept in a journal, see ``server``. Answers depend on nothing but the request, its plan and its place among the
calls of its scope, so that two runs of a program can be compared byte by byte.
"""

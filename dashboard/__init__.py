"""SHOW: pages over the store. They draw what the analyzer computed; importing this package loads no Streamlit."""
